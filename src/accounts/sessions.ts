import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { newId, toId } from '../ids.ts'
import { toLabel } from '../user-agent.ts'
import { LONGEST_S } from './cookies.ts'
import type { Role } from './permissions.ts'
import type { SessionInfo } from './schema.ts'
import { hashSecret, newSecret } from './secret.ts'

/** Who is signed in where, and what they are to the organization or project that a request is about. */
export interface Admitted {
  /** `leftS`: seconds until it ends, where it is not installed. */
  session: { id: string; isInstalled: boolean; leftS: number }
  person: { id: string; name: string; email: string; isOperator: boolean }
  isVerified: boolean
  organizationId: string | undefined
  projectId: string | undefined
  role: Role | undefined
}

export interface Wanted {
  hash: string
  /** The uuid of the organization, or of the project, that the request is about. */
  organizationId?: string | undefined
  projectId?: string | undefined
}

interface Row {
  session_id: string
  is_installed: boolean
  left_s: number
  person_id: string
  name: string
  email: string
  is_operator: boolean
  is_verified: boolean
  organization_id: string | null
  project_id: string | null
  role: Role | null
}

/**
 * The session with this token, undefined when there is none or it has expired: after 7 days without use or 30 days in
 * all, in an installed app after a year without use. Nothing is cached, so what was ended is refused on the next request.
 */
export async function admitSession(
  sql: Queryable,
  { hash, organizationId, projectId }: Wanted,
): Promise<Admitted | undefined> {
  const [row] = await sql<Row[]>`
    with used as (
      -- Once a minute is enough to tell when a session was last used.
      update sessions s set last_seen_at = now()
      where s.hash = decode(${hash}, 'hex') and s.last_seen_at < now() - interval '1 minute'
        and not ${isExpired(sql)}
    )
    select
      s.id as session_id, s.is_installed,
      extract(epoch from s.created_at + interval '30 days' - now())::float8 as left_s, p.id as person_id, p.name, p.email, p.is_operator,
      s.verified_at > now() - interval '10 minutes' as is_verified,
      o.id as organization_id, r.id as project_id, m.role
    from sessions s
      join people p on p.id = s.person_id
      left join projects r on r.id = ${projectId ?? null} and r.deleted_at is null
      left join organizations o on o.id = coalesce(${organizationId ?? null}, r.organization_id)
        and o.deleted_at is null
      left join memberships m on m.organization_id = o.id and m.person_id = p.id
    where s.hash = decode(${hash}, 'hex') and not ${isExpired(sql)}
  `
  if (!row) return undefined
  return {
    session: { id: row.session_id, isInstalled: row.is_installed, leftS: row.left_s },
    person: { id: row.person_id, name: row.name, email: row.email, isOperator: row.is_operator },
    isVerified: row.is_verified,
    organizationId: row.organization_id ?? undefined,
    projectId: row.project_id ?? undefined,
    role: row.role ?? undefined,
  }
}

/** The condition of a row `s` of sessions that is over. */
export function isExpired(sql: Queryable) {
  return sql`(
    s.last_seen_at < now() - case when s.is_installed then interval '1 year' else interval '7 days' end
    or not s.is_installed and s.created_at < now() - interval '30 days'
  )`
}

export interface NewSession {
  personId: string
  isInstalled: boolean
  address: string
  userAgent: string
}

/** Signs a person in; the token is in this answer and nowhere else. */
export async function createSession(
  sql: Queryable,
  { personId, isInstalled, address, userAgent }: NewSession,
): Promise<{ id: string; token: string }> {
  const { uuid } = newId('ses')
  const token = newSecret(256)
  await sql`
    insert into sessions (id, hash, person_id, is_installed, address, user_agent)
    values (
      ${uuid}, decode(${hashSecret(token)}, 'hex'), ${personId}, ${isInstalled}, ${address},
      ${userAgent.slice(0, 500)}
    )
  `
  return { id: uuid, token }
}

/**
 * Gives a session a new token, now that the password was typed; `token`, the old one, is refused from then on. Throws
 * `conflict` when it was no longer the session's.
 */
export async function rotateSession(
  sql: Queryable,
  { id, token }: { id: string; token: string },
): Promise<string> {
  const fresh = newSecret(256)
  const rotated = await sql`
    update sessions set
      hash = decode(${hashSecret(fresh)}, 'hex'),
      verified_at = now()
    where id = ${id} and hash = decode(${hashSecret(token)}, 'hex')
  `
  if (rotated.count === 1) return fresh
  throw new Fault('conflict', 'The session has just been renewed or ended: reload the page')
}

/** Ends one session of a person; whether there was one. */
export async function endSession(tx: Tx, personId: string, id: string): Promise<boolean> {
  const ended = await tx`delete from sessions where id = ${id} and person_id = ${personId}`
  return ended.count === 1
}

/** Ends every session of a person, whose row must be locked, but for one; returns how many. */
export async function endSessions(tx: Tx, personId: string, except?: string): Promise<number> {
  const ended = await tx`
    delete from sessions where person_id = ${personId} and id is distinct from ${except ?? null}
  `
  return ended.count
}

/** Ends the sessions of a person, whose row must be locked, that were not used for longest, beyond `max`. */
export async function boundSessions(tx: Tx, personId: string, max: number): Promise<void> {
  await tx`
    delete from sessions
    where id in (
      select id
      from sessions
      where person_id = ${personId}
      order by last_seen_at desc, id desc
      offset ${max}
    )
  `
}

/** A page of a person's live sessions, newest first. */
export async function listSessions(
  sql: Queryable,
  { person, session }: Pick<Admitted, 'person' | 'session'>,
  query: PageQuery,
): Promise<Page<SessionInfo>> {
  const { after, rows: limit } = toSlice('ses', query)
  const rows = await sql<
    {
      id: string
      is_installed: boolean
      created_at: Date
      last_seen_at: Date
      address: string
      user_agent: string
    }[]
  >`
    select s.id, s.is_installed, s.created_at, s.last_seen_at, s.address, s.user_agent
    from sessions s
    where s.person_id = ${person.id} ${after ? sql`and s.id < ${after}` : sql``}
      and not ${isExpired(sql)}
    order by s.id desc
    limit ${limit}
  `
  const items = rows.map(row => ({
    id: toId('ses', row.id),
    createdAt: row.created_at.toISOString(),
    lastSeenAt: row.last_seen_at.toISOString(),
    address: row.address,
    userAgent: row.user_agent,
    browser: toLabel(row.user_agent),
    isInstalled: row.is_installed,
    isCurrent: row.id === session.id,
  }))
  return toPage(items, query, ({ id }) => id)
}

/** How long a browser keeps the cookie of a session; the server may end it sooner. */
export function toCookieSeconds({ isInstalled, leftS }: Admitted['session']): number {
  return isInstalled ? LONGEST_S : Math.max(1, Math.ceil(leftS))
}

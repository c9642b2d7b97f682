import { Fault } from '../../base/errors.ts'
import { newId, toId } from '../../base/ids.ts'
import { toBrowserName } from '../../base/user-agent.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import type { Admitted, AdmittedToken, Ids, Proven } from './caller.ts'
import type { Role } from './permissions.ts'
import type { SessionInfo, SignInMethod } from './schema.ts'
import { hashSecret, newSecret, type Cookies } from './secret.ts'

const MAX_SESSIONS = 100

/** A request with a session. */
export interface AdmittedSession extends Admitted {
  /** `leftS` is the longest time that the session can last, in seconds. */
  session: Proven & { id: string; isInstalled: boolean; leftS: number }
  token?: undefined
}

/** A request with a session or a token. */
export type AdmittedCaller = AdmittedSession | AdmittedToken

/**
 * Finds the valid session whose token has the hash. A session expires after 7 days without use, and
 * in any case after 30 days. In an installed app whose push service has accepted a push, it expires
 * after a year. Nothing is cached, so the next request of an ended session is refused.
 */
export async function admitSession(
  sql: Queryable,
  { hash, organizationId, projectId }: Ids & { hash: string },
): Promise<AdmittedSession | undefined> {
  const [row] = await sql<
    {
      session_id: string
      is_installed: boolean
      left_s: number
      account_id: string
      name: string
      email: string
      is_operator: boolean
      is_verified: boolean
      is_multi_factor: boolean
      has_factor: boolean
      needs_second_factor: boolean
      organization_id: string | null
      project_id: string | null
      role: Role | null
    }[]
  >`
    with used as (
      -- Written at most once a minute.
      update sessions s set last_seen_at = now()
      where s.hash = decode(${hash}, 'hex') and s.last_seen_at < now() - interval '1 minute'
        and not ${isExpired(sql)}
    )
    select
      s.id as session_id, s.is_installed,
      extract(
        epoch from s.created_at + case when s.is_installed then interval '1 year' else interval '30 days' end - now()
      )::float8 as left_s,
      p.id as account_id, p.name, p.email, p.is_operator,
      s.verified_at between now() - interval '10 minutes' and now() + interval '1 minute' as is_verified,
      s.is_multi_factor, has_factor(p.id) as has_factor,
      coalesce(lacks_second_factor(o.requires_second_factor, s.is_multi_factor), false)
        as needs_second_factor,
      o.id as organization_id, r.id as project_id, m.role
    from sessions s
      join accounts p on p.id = s.account_id
      left join projects r on r.id = ${projectId ?? null} and r.deleted_at is null
      left join organizations o on o.id = coalesce(${organizationId ?? null}, r.organization_id)
        and o.deleted_at is null
      left join memberships m on m.organization_id = o.id and m.account_id = p.id
    where s.hash = decode(${hash}, 'hex') and not ${isExpired(sql)}
  `
  if (!row) return undefined
  return {
    session: {
      id: row.session_id,
      isInstalled: row.is_installed,
      isMultiFactor: row.is_multi_factor,
      hasFactor: row.has_factor,
      leftS: row.left_s,
    },
    account: { id: row.account_id, name: row.name, email: row.email, isOperator: row.is_operator },
    isVerified: row.is_verified,
    needsSecondFactor: row.needs_second_factor,
    organizationId: row.organization_id ?? undefined,
    projectId: row.project_id ?? undefined,
    role: row.role ?? undefined,
  }
}

/** Returns what a session has proved; undefined if it has ended. */
export async function readProven(
  sql: Queryable,
  { account, session }: Pick<AdmittedSession, 'account' | 'session'>,
): Promise<Proven | undefined> {
  const [row] = await sql<Proven[]>`
    select s.is_multi_factor as "isMultiFactor", has_factor(s.account_id) as "hasFactor"
    from sessions s
    where s.id = ${session.id} and s.account_id = ${account.id}
  `
  return row
}

/**
 * The SQL condition that the session `s` has expired. An installed app stays signed in for a year,
 * so that its notifications keep arriving. Its word is not enough: its push service must have
 * accepted a push.
 */
export function isExpired(sql: Queryable) {
  return sql`is_session_expired(
    s.is_installed and exists (
      select from push_subscriptions b where b.session_id = s.id and b.is_proven
    ),
    s.created_at, s.last_seen_at
  )`
}

export interface NewSession {
  accountId: string
  method: SignInMethod
  isInstalled: boolean
  /** True if the account proved more than a password. A passkey counts as two factors. */
  isMultiFactor: boolean
  /** The uuid of the passkey that signed in. */
  passkeyId?: string | undefined
  /** The id of the browser, of `rememberBrowser`. */
  browserId?: string | undefined
  address: string
  userAgent: string
}

/**
 * Creates a session. Returns its uuid and its token, which is not stored. An account has at most
 * 100 sessions: the least recently used ones end, and last those whose device receives
 * notifications.
 */
export async function createSession(
  sql: Queryable,
  {
    accountId,
    method,
    isInstalled,
    isMultiFactor,
    passkeyId,
    browserId,
    address,
    userAgent,
  }: NewSession,
): Promise<{ id: string; token: string }> {
  const { uuid } = newId('ses')
  const token = newSecret(256)
  await sql`
    insert into sessions (
      id, hash, account_id, method, is_installed, is_multi_factor, passkey_id, browser_id,
      address, user_agent
    )
    values (
      ${uuid}, decode(${hashSecret(token)}, 'hex'), ${accountId}, ${method}, ${isInstalled},
      ${isMultiFactor}, ${passkeyId ?? null}, ${browserId ?? null}, ${address},
      ${userAgent.slice(0, 500)}
    )
  `
  await sql`
    delete from sessions
    where id in (
      select s.id
      from sessions s
      where s.account_id = ${accountId} and s.id <> ${uuid}
      order by
        exists (select from push_subscriptions b where b.session_id = s.id) desc,
        s.last_seen_at desc, s.id desc
      offset ${MAX_SESSIONS - 1}
    )
  `
  return { id: uuid, token }
}

export interface Renewal {
  /** True if the account proved more than a password. */
  isMultiFactor?: boolean
  /** False if the renewal does not count as a verification. */
  isVerified?: boolean
}

/**
 * Replaces the token of a session after the account was verified. Returns the Set-Cookie value of
 * the new one. Throws `conflict` if the cookie no longer has the session's token.
 */
export async function renewSession(
  sql: Queryable,
  { admitted: { session }, cookies }: { admitted: AdmittedSession; cookies: Cookies },
  { isMultiFactor = false, isVerified = true }: Renewal = {},
): Promise<string> {
  const fresh = newSecret(256)
  const token = cookies.read('session') ?? ''
  const rotated = await sql`
    update sessions set
      hash = decode(${hashSecret(fresh)}, 'hex'),
      verified_at = case when ${isVerified} then now() else verified_at end,
      is_multi_factor = is_multi_factor or ${isMultiFactor}
    where id = ${session.id} and hash = decode(${hashSecret(token)}, 'hex')
  `
  if (rotated.count === 1) return cookies.keep('session', fresh, toCookieSeconds(session))
  throw new Fault('conflict', 'The session was just renewed or ended. Reload the page.')
}

/** Ends one session of an account. Returns whether it existed. */
export async function endSession(tx: Tx, accountId: string, id: string): Promise<boolean> {
  const ended = await tx`delete from sessions where id = ${id} and account_id = ${accountId}`
  return ended.count === 1
}

/**
 * Ends all sessions of an account except one. The caller has locked the account. Returns the number
 * of ended sessions.
 */
export async function endSessions(tx: Tx, accountId: string, except?: string): Promise<number> {
  const ended = await tx`
    delete from sessions where account_id = ${accountId} and id is distinct from ${except ?? null}
  `
  return ended.count
}

/**
 * Takes the proof of a second factor from the sessions of an account except one, after a factor was
 * removed: it may have confirmed them. Sessions that another passkey began keep theirs. The caller
 * has locked the account.
 */
export async function weakenSessions(tx: Tx, accountId: string, except?: string): Promise<void> {
  await tx`
    update sessions set is_multi_factor = false
    where account_id = ${accountId} and id is distinct from ${except ?? null}
      and is_multi_factor and passkey_id is null
  `
}

/** Returns a page of the account's valid sessions, newest first. */
export async function listSessions(
  sql: Queryable,
  { account, session }: Pick<AdmittedSession, 'account' | 'session'>,
  query: PageQuery,
): Promise<Page<SessionInfo>> {
  const { after, rows: limit } = parsePageQuery('ses', query)
  const rows = await sql<Omit<SessionInfo, 'browser'>[]>`
    select
      s.id, to_iso(s.created_at) as "createdAt", to_iso(s.last_seen_at) as "lastSeenAt", s.address,
      s.user_agent as "userAgent", s.method, s.is_multi_factor as "isMultiFactor",
      s.is_installed as "isInstalled", s.id = ${session.id} as "isCurrent"
    from sessions s
    where s.account_id = ${account.id} ${after ? sql`and s.id < ${after}` : sql``}
      and not ${isExpired(sql)}
    order by s.id desc
    limit ${limit}
  `
  const items = rows.map(row => ({
    ...row,
    id: toId('ses', row.id),
    browser: toBrowserName(row.userAgent),
  }))
  return toPage(items, query, ({ id }) => id)
}

/** Returns the Max-Age of a session's cookie. The server may end the session earlier. */
export function toCookieSeconds({ leftS }: AdmittedSession['session']): number {
  return Math.max(1, Math.ceil(leftS))
}

import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { hashToken } from '../../base/token-form.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { lockProject } from '../organizations/projects.ts'
import { DEFAULT_SCOPES, parseScopes, type ApiKey, type KeyChange, type Scope } from './schema.ts'
import { newToken, KEY_PREFIX } from './token.ts'

export const DEFAULT_RATE_LIMIT = 100
const MAX_LIVE = 100

export interface NewKey {
  projectId: string
  name: string
  /** Requests per 60 seconds. */
  limit?: number
  scopes?: readonly Scope[]
  expiresAt?: Date
  /** True if the token is written to the log. */
  isPrinted?: boolean
}

/** Refers to a key of a project. `projectId` is a uuid, `id` the public id. */
export interface KeyRef {
  projectId: string
  id: string
}

/** The public id of a new key, and its token, which is not stored. */
interface CreatedKey {
  id: string
  token: string
}

/** Creates a key. */
export async function createKey(tx: Tx, actor: Actor, key: NewKey): Promise<CreatedKey> {
  const organizationId = await lockProject(tx, key.projectId)
  const created = await insertKey(tx, actor, { ...key, organizationId })
  await writeAudit(tx, actor, {
    action: 'key.created',
    organizationId,
    projectId: key.projectId,
    target: created.id,
    details: {
      name: key.name,
      scopes: (key.scopes ?? DEFAULT_SCOPES).join(' '),
      limit: key.limit ?? DEFAULT_RATE_LIMIT,
      expiresAt: key.expiresAt?.toISOString() ?? null,
    },
  })
  return created
}

/**
 * Changes the name or rate limit of a live key, from the next request on. Calls `onRaise` before it
 * raises the limit, and lets its error through. Throws `not_found`.
 */
export async function editKey(
  tx: Tx,
  actor: Actor,
  { projectId, id, name, limit }: KeyRef & KeyChange,
  onRaise: () => void,
): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const [key] = await tx<{ rate_limit: number }[]>`
    select k.rate_limit
    from api_keys k
    where ${isKey(tx, { projectId, id })} and ${isLive(tx)}
    for no key update
  `
  if (!key) throw liveKeyNotFound()
  if (limit !== undefined && limit > key.rate_limit) onRaise()
  await tx`
    update api_keys k set
      name = coalesce(${name ?? null}, k.name),
      rate_limit = coalesce(${limit ?? null}::int, k.rate_limit)
    where ${isKey(tx, { projectId, id })}
  `
  await writeAudit(tx, actor, {
    action: 'key.edited',
    organizationId,
    projectId,
    target: id,
    details: { ...(name !== undefined && { name }), ...(limit !== undefined && { limit }) },
  })
}

/** Revokes a key. Every process rejects it from the next request on. Throws `not_found`. */
export async function revokeKey(tx: Tx, actor: Actor, { projectId, id }: KeyRef): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const [key] = await tx<{ id: string; revoked_at: Date | null }[]>`
    select k.id, k.revoked_at
    from api_keys k
    where ${isKey(tx, { projectId, id })}
    for no key update
  `
  if (!key) throw keyNotFound()
  if (key.revoked_at !== null) return
  await tx`update api_keys set revoked_at = now() where id = ${key.id}`
  await writeAudit(tx, actor, { action: 'key.revoked', organizationId, projectId, target: id })
}

/**
 * Replaces a key by a new one with the same settings and expiry, and its own rate window. The old
 * key stays valid for `overlapHours`, and no longer than before. Throws `not_found` if the key is
 * unknown, revoked or expired.
 */
export async function rotateKey(
  tx: Tx,
  actor: Actor,
  { projectId, id, overlapHours = 24 }: KeyRef & { overlapHours?: number | undefined },
): Promise<CreatedKey> {
  const organizationId = await lockProject(tx, projectId)
  const [old] = await tx<
    { id: string; name: string; rate_limit: number; scopes: string; expires_at: Date | null }[]
  >`
    select
      k.id, k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes,
      nullif(coalesce(k.chosen_expires_at, k.expires_at), 'infinity') as expires_at
    from api_keys k
    where ${isKey(tx, { projectId, id })} and ${isLive(tx)}
    for no key update
  `
  if (!old) throw liveKeyNotFound()
  await tx`
    update api_keys set
      expires_at = least(expires_at, now() + make_interval(secs => ${overlapHours * 3600})),
      chosen_expires_at = coalesce(chosen_expires_at, expires_at, 'infinity'),
      is_printed = false
    where id = ${old.id}
  `
  const created = await insertKey(tx, actor, {
    organizationId,
    projectId,
    name: old.name,
    limit: old.rate_limit,
    scopes: parseScopes(old.scopes),
    ...(old.expires_at && { expiresAt: old.expires_at }),
  })
  await writeAudit(tx, actor, {
    action: 'key.rotated',
    organizationId,
    projectId,
    target: id,
    details: { replacedBy: created.id, overlapHours },
  })
  return created
}

/** Returns a page of a project's keys, newest first. */
export async function listKeys(
  sql: Queryable,
  projectId: string,
  query: PageQuery = {},
): Promise<Page<ApiKey>> {
  const { after, rows } = parsePageQuery('key', query)
  const where = sql`k.project_id = ${projectId} ${after ? sql`and k.id < ${after}` : sql``}`
  return toPage(await selectKeys(sql, where, rows), query, ({ id }) => id)
}

/** Returns one key of a project. Throws `not_found`. */
export async function getKey(sql: Queryable, ref: KeyRef): Promise<ApiKey> {
  const [key] = await selectKeys(sql, isKey(sql, ref), 1)
  if (!key) throw keyNotFound()
  return key
}

async function selectKeys(sql: Queryable, where: Fragment, limit: number): Promise<ApiKey[]> {
  const rows = await sql<ApiKey[]>`
    select
      k.id, k.name, ${KEY_PREFIX} as prefix, k.last_four as "lastFour", k.rate_limit as "limit",
      to_json(k.scopes) as scopes, to_iso(k.created_at) as "createdAt", p.name as "createdBy",
      to_iso(k.last_used_at) as "lastUsedAt", to_iso(k.expires_at) as "expiresAt",
      to_iso(k.revoked_at) as "revokedAt", k.is_printed as "isPrinted", (
        select json_agg(coalesce(u.requests, 0) order by h.hour)
        from generate_series(
            date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
          ) as h (hour)
          left join key_usage u on u.key_id = k.id and u.hour = h.hour
      ) as "requestsPerHour"
    from api_keys k
      left join accounts p on p.id = k.created_by
    where ${where}
    order by k.id desc
    limit ${limit}
  `
  return rows.map(row => ({ ...row, id: toId('key', row.id) }))
}

/** Inserts a key. The caller has locked the project. */
async function insertKey(
  tx: Tx,
  actor: Actor,
  key: NewKey & { organizationId: string },
): Promise<CreatedKey> {
  const {
    organizationId,
    projectId,
    name,
    limit = DEFAULT_RATE_LIMIT,
    scopes = DEFAULT_SCOPES,
  } = key
  const [live] = await tx<[{ n: number }]>`
    select count(*)::int as n from api_keys k where k.project_id = ${projectId} and ${isLive(tx)}
  `
  if (live.n >= MAX_LIVE) {
    throw new Fault(
      'conflict',
      `A project can have at most ${MAX_LIVE} live keys. Revoke one first.`,
    )
  }
  const { id, uuid } = newId('key')
  const token = newToken()
  await tx`
    insert into api_keys (
      id, organization_id, project_id, name, hash, last_four, scopes, rate_limit, expires_at, created_by,
      is_printed
    )
    values (
      ${uuid}, ${organizationId}, ${projectId}, ${name}, decode(${hashToken(token)}, 'hex'),
      ${token.slice(-4)}, ${toArray([...new Set(scopes)])}::text[], ${limit}, ${key.expiresAt ?? null},
      ${actor.accountId ?? null}, ${key.isPrinted ?? false}
    )
  `
  return { id, token }
}

/** The SQL condition that the row `k` is this key. An invalid id matches no row. */
function isKey(sql: Queryable, { projectId, id }: KeyRef): Fragment {
  return sql`k.project_id = ${projectId} and k.id = ${parseId('key', id) ?? null}`
}

/** The SQL condition that the key `k` is neither revoked nor expired. */
function isLive(sql: Queryable): Fragment {
  return sql`(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))`
}

/** Returns the error for an unknown key, which is the same for a key of another project. */
function keyNotFound(): Fault {
  return new Fault('not_found', 'No key of this project has this id')
}

function liveKeyNotFound(): Fault {
  return new Fault('not_found', 'No live key of this project has this id')
}

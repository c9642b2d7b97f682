import { lockProject } from '../accounts/projects.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { newId, parseId } from '../ids.ts'
import { parseScopes, SCOPES, type KeyChange, type Scope } from './schema.ts'
import { hashToken, newToken } from './token.ts'

export const DEFAULT_LIMIT = 100
const MAX_LIVE = 100

export interface NewKey {
  projectId: string
  name: string
  /** Requests per 60 seconds. */
  limit?: number
  scopes?: readonly Scope[]
  expiresAt?: Date
}

/** A key of a project, by its public id. */
export interface KeyPlace {
  projectId: string
  id: string
}

/** Makes a key. The token is in this answer and nowhere else. */
export async function createKey(
  tx: Tx,
  actor: Actor,
  key: NewKey,
): Promise<{ id: string; token: string }> {
  const organizationId = await lockProject(tx, key.projectId)
  const made = await insertKey(tx, actor, { ...key, organizationId })
  await writeAudit(tx, actor, {
    action: 'key.created',
    organizationId,
    projectId: key.projectId,
    target: made.id,
    details: { name: key.name, limit: key.limit ?? DEFAULT_LIMIT },
  })
  return made
}

/** Renames a live key, or gives it another limit, which holds from the next request on. Throws `not_found`. */
export async function editKey(
  tx: Tx,
  actor: Actor,
  { projectId, id, name, limit }: KeyPlace & KeyChange,
): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const edited = await tx`
    update api_keys k set
      name = coalesce(${name ?? null}, k.name),
      rate_limit = coalesce(${limit ?? null}::int, k.rate_limit)
    where k.project_id = ${projectId} and k.id = ${parseId('key', id) ?? null} and ${isLive(tx)}
  `
  if (edited.count === 0) throw notLive()
  await writeAudit(tx, actor, {
    action: 'key.edited',
    organizationId,
    projectId,
    target: id,
    details: { ...(name !== undefined && { name }), ...(limit !== undefined && { limit }) },
  })
}

/** Ends a key: it is refused from the next request on, by every process. Throws `not_found`. */
export async function revokeKey(tx: Tx, actor: Actor, { projectId, id }: KeyPlace): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const [key] = await tx<{ id: string; revoked_at: Date | null }[]>`
    select id, revoked_at
    from api_keys
    where project_id = ${projectId} and id = ${parseId('key', id) ?? null}
    for no key update
  `
  if (!key) throw noKey()
  if (key.revoked_at !== null) return
  await tx`update api_keys set revoked_at = now() where id = ${key.id}`
  await writeAudit(tx, actor, { action: 'key.revoked', organizationId, projectId, target: id })
}

/**
 * Makes a new key like `id`, its expiry included, with a window of its own, and lets the old one live on for
 * `overlapHours`. Throws `not_found` for a key that is unknown, revoked or expired.
 */
export async function rotateKey(
  tx: Tx,
  actor: Actor,
  { projectId, id, overlapHours = 24 }: KeyPlace & { overlapHours?: number | undefined },
): Promise<{ id: string; token: string }> {
  const organizationId = await lockProject(tx, projectId)
  const uuid = parseId('key', id)
  const [old] = await tx<
    { id: string; name: string; rate_limit: number; scopes: string; expires_at: Date | null }[]
  >`
    select k.id, k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes, k.expires_at
    from api_keys k
    where k.project_id = ${projectId} and k.id = ${uuid ?? null} and ${isLive(tx)}
    for no key update
  `
  if (!old) throw notLive()
  await tx`
    update api_keys set
      expires_at = least(expires_at, now() + make_interval(secs => ${overlapHours * 3600}))
    where id = ${old.id}
  `
  const made = await insertKey(tx, actor, {
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
    details: { replacedBy: made.id, overlapHours },
  })
  return made
}

/** Inserts a key of a project that the transaction has locked. */
async function insertKey(
  tx: Tx,
  actor: Actor,
  key: NewKey & { organizationId: string },
): Promise<{ id: string; token: string }> {
  const { organizationId, projectId, name, limit = DEFAULT_LIMIT, scopes = SCOPES } = key
  const [live] = await tx<[{ n: number }]>`
    select count(*)::int as n from api_keys k where k.project_id = ${projectId} and ${isLive(tx)}
  `
  if (live.n >= MAX_LIVE) {
    throw new Fault('conflict', `A project has at most ${MAX_LIVE} live keys: revoke one first`)
  }
  const { id, uuid } = newId('key')
  const token = newToken()
  await tx`
    insert into api_keys (
      id, organization_id, project_id, name, hash, last_four, scopes, rate_limit, expires_at, created_by
    )
    values (
      ${uuid}, ${organizationId}, ${projectId}, ${name}, decode(${hashToken(token)}, 'hex'),
      ${token.slice(-4)}, ${toArray([...new Set(scopes)])}::text[], ${limit}, ${key.expiresAt ?? null},
      ${actor.personId ?? null}
    )
  `
  return { id, token }
}

/** The condition of a key `k` that opens something. */
function isLive(sql: Queryable): Fragment {
  return sql`(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))`
}

/** What is answered for a key of another project, too. */
export function noKey(): Fault {
  return new Fault('not_found', 'No key of this project has this id')
}

function notLive(): Fault {
  return new Fault('not_found', 'No live key of this project has this id')
}

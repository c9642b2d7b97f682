import { toArray } from '../db/arrays.ts'
import type { Queryable, Sql } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { newId, parseId, toId } from '../ids.ts'
import { parseScopes, SCOPES, type Scope } from './schema.ts'
import { hashToken, newToken } from './token.ts'

export const DEFAULT_LIMIT = 100

export interface NewKey {
  projectId: string
  name: string
  /** Requests per 60 seconds. */
  limit?: number
  scopes?: readonly Scope[]
  expiresAt?: Date
}

/** A key as people may see it: never the secret. */
export interface KeyInfo {
  id: string
  name: string
  lastFour: string
  limit: number
  scopes: Scope[]
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
  revokedAt: Date | null
}

/** Makes a key. The token is in this answer and nowhere else. */
export async function createKey(
  sql: Queryable,
  { projectId, name, limit = DEFAULT_LIMIT, scopes = SCOPES, expiresAt }: NewKey,
): Promise<{ id: string; token: string }> {
  const { id, uuid } = newId('key')
  const token = newToken()
  const made = await sql`
    insert into api_keys (
      id, organization_id, project_id, name, hash, last_four, scopes, rate_limit, expires_at
    )
    select
      ${uuid}, p.organization_id, p.id, ${name}, decode(${hashToken(token)}, 'hex'), ${token.slice(-4)},
      ${toArray(scopes)}::text[], ${limit}, ${expiresAt ?? null}
    from projects p
    where p.id = ${projectId}
  `
  if (made.count === 0) throw new Fault('not_found', 'No project has this id')
  return { id, token }
}

/** All keys of a project, newest first. */
export async function listKeys(sql: Queryable, projectId: string): Promise<KeyInfo[]> {
  const rows = await sql<
    {
      id: string
      name: string
      last_four: string
      rate_limit: number
      scopes: string
      created_at: Date
      last_used_at: Date | null
      expires_at: Date | null
      revoked_at: Date | null
    }[]
  >`
    select
      id, name, last_four, rate_limit, array_to_string(scopes, ' ') as scopes,
      created_at, last_used_at, expires_at, revoked_at
    from api_keys
    where project_id = ${projectId}
    order by id desc
  `
  return rows.map(row => ({
    id: toId('key', row.id),
    name: row.name,
    lastFour: row.last_four,
    limit: row.rate_limit,
    scopes: parseScopes(row.scopes),
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  }))
}

/** Ends a key: it is refused from the next request on, by every process. Throws `not_found`. */
export async function revokeKey(sql: Queryable, projectId: string, id: string): Promise<void> {
  const uuid = parseId('key', id)
  const ended = uuid
    ? await sql`
        update api_keys set revoked_at = coalesce(revoked_at, now())
        where project_id = ${projectId} and id = ${uuid}
      `
    : { count: 0 }
  if (ended.count === 0) throw new Fault('not_found', 'No key of this project has this id')
}

/**
 * Makes a new key like `id`, its expiry included, with a window of its own, and lets the old one live on for `overlapHours`. Throws
 * `not_found` for a key that is unknown, revoked or expired.
 */
export async function rotateKey(
  sql: Sql,
  projectId: string,
  { id, overlapHours = 24 }: { id: string; overlapHours?: number },
): Promise<{ id: string; token: string }> {
  const uuid = parseId('key', id)
  return sql.begin(async tx => {
    const [old] = await tx<
      { name: string; rate_limit: number; scopes: string; expires_at: Date | null }[]
    >`
      with old as (
        select id, name, rate_limit, scopes, expires_at
        from api_keys
        where project_id = ${projectId} and id = ${uuid ?? null}
          and revoked_at is null and (expires_at is null or expires_at > now())
        for update
      ), shortened as (
        update api_keys k set
          expires_at = least(k.expires_at, now() + make_interval(secs => ${overlapHours * 3600}))
        from old
        where k.id = old.id
      )
      select name, rate_limit, array_to_string(scopes, ' ') as scopes, expires_at from old
    `
    if (!old) throw new Fault('not_found', 'No live key of this project has this id')
    return createKey(tx, {
      projectId,
      name: old.name,
      limit: old.rate_limit,
      scopes: parseScopes(old.scopes),
      ...(old.expires_at && { expiresAt: old.expires_at }),
    })
  })
}

import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedTable } from '../../database/secrets/rotation.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import type { UserRef } from './users.ts'

/** The sealed columns, for the rotation of APP_SECRET. */
export const SEALED_ERASURE_KEYS = {
  table: 'erasure_keys',
  columns: ['sealed'],
} as const satisfies SealedTable

/** Deletes an erasure key that cannot be opened. The next start makes another one. */
export const ERASURE_KEY_LOSS: SecretLoss = {
  ...SEALED_ERASURE_KEYS,
  describe: () =>
    'The list of erased users no longer fits backups that are made from now on. Backups made before keep their key',
  async drop(tx, ids) {
    await tx`delete from erasure_keys where id = any(${toArray(ids)}::uuid[])`
  },
}

const KEY_BYTES = 32

/** The key that hashes the names of erased users. `id` is a uuid. */
export interface ErasureKey {
  id: string
  /**
   * Returns the HMAC-SHA256 of a name in a project, in hex. Without the key, no name can be
   * guessed.
   */
  hash(projectId: string, name: string): string
}

/** A name of an erased user, as the list keeps it. Ids are uuids. */
export interface ErasedName {
  /** The key that made the hash. */
  erasureKeyId: string
  erasedUserId: string
  projectId: string
  isUserId: boolean
  /** In hex. */
  hash: string
  erasedAt: Date
  /** The API key that erased the user; null for a member. */
  keyId: string | null
}

/** An erasure, as responses show it. */
export interface ErasedUser {
  events: number
  erasedAt: Date
  /** The API key that erased the user; null for a member. `id` is a uuid. */
  key: { id: string; name: string } | null
  /** The months (such as `2026-05`) whose exported files can name the user. */
  exportedMonths: string[]
}

/**
 * Returns the key of this installation. The first call creates it, also if several calls run at
 * once.
 */
export async function ensureErasureKey(sql: Queryable, secrets: Secrets): Promise<ErasureKey> {
  const known = await findErasureKey(sql, secrets)
  if (known) return known
  const id = randomUUID()
  const sealed = secrets.seal(randomBytes(KEY_BYTES).toString('base64'), toSealedCell(id))
  await sql`
    insert into erasure_keys (id, sealed) values (${id}, ${sealed}) on conflict (singleton) do nothing
  `
  const key = await findErasureKey(sql, secrets)
  if (!key) throw new Error('The erasure key is gone')
  return key
}

/** Returns the key of this installation; undefined before the first start. */
export async function findErasureKey(
  sql: Queryable,
  secrets: Secrets,
): Promise<ErasureKey | undefined> {
  const [row] = await sql<{ id: string; sealed: string }[]>`select id, sealed from erasure_keys`
  if (!row) return undefined
  const key = Buffer.from(secrets.open(row.sealed, toSealedCell(row.id)), 'base64')
  return {
    id: row.id,
    hash: (projectId, name) =>
      createHmac('sha256', key).update(`${projectId} ${name}`, 'utf8').digest('hex'),
  }
}

function toSealedCell(rowId: string) {
  return { table: SEALED_ERASURE_KEYS.table, column: SEALED_ERASURE_KEYS.columns[0], rowId }
}

const MAX_NAMES = 1_000

/** A name of an erasure, also in clear. */
export interface ClearName extends ErasedName {
  name: string
}

/**
 * Hashes up to 1,000 names of the erasures of a user that are in progress into the list. Returns
 * those that are not marked as listed.
 */
export async function listNextNames(
  sql: Queryable,
  key: ErasureKey,
  { projectId, userId }: Omit<UserRef, 'organizationId'>,
): Promise<ClearName[]> {
  const rows = await sql<Omit<ClearName, 'erasureKeyId' | 'isUserId' | 'hash'>[]>`
    select
      u.id as "erasedUserId", u.project_id as "projectId", n.name, u.erased_at as "erasedAt", u.key_id as "keyId"
    from erasures e
      join erasure_names n on n.project_id = e.project_id and n.erasure_id = e.id
      join erased_users u on u.project_id = e.project_id and u.id = e.id
    where e.project_id = ${projectId} and e.user_id = ${userId} and not n.is_listed
    limit ${MAX_NAMES}
  `
  const names = rows.map(row => ({
    ...row,
    erasureKeyId: key.id,
    isUserId: row.name === userId,
    hash: key.hash(projectId, row.name),
  }))
  if (names.length > 0) await insertErasedNames(sql, names)
  return names
}

/** Marks names of a project as listed. Their erasures can then forget them. */
export async function markListed(
  sql: Queryable,
  projectId: string,
  names: readonly ClearName[],
): Promise<void> {
  await sql`
    update erasure_names n set is_listed = true
    from unnest(
        ${toArray(names.map(({ erasedUserId }) => erasedUserId))}::uuid[],
        ${toArray(names.map(({ name }) => name))}::text[]
      ) as l (erasure_id, name)
    where n.project_id = ${projectId} and n.erasure_id = l.erasure_id and n.name = l.name
  `
}

/**
 * Adds names to the list, unless it has them. Their erasures are in erased_users. The order keeps
 * two processes that list the same names from a deadlock.
 */
export async function insertErasedNames(
  sql: Queryable,
  names: readonly ErasedName[],
): Promise<void> {
  await sql`
    insert into erased_names (project_id, hash, erased_user_id, is_user_id)
    select n.project_id, decode(n.hash, 'hex'), n.erased_user_id, n.is_user_id
    from unnest(
        ${toArray(names.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(names.map(({ hash }) => hash))}::text[],
        ${toArray(names.map(({ erasedUserId }) => erasedUserId))}::uuid[],
        ${toArray(names.map(({ isUserId }) => isUserId))}::boolean[]
      ) as n (project_id, hash, erased_user_id, is_user_id)
    order by n.project_id, n.hash, n.erased_user_id
    on conflict do nothing
  `
}

/** Returns the last erasure of a user_id; undefined if it was never erased. */
export async function findErasedUser(
  sql: Queryable,
  key: ErasureKey,
  { projectId, userId }: Omit<UserRef, 'organizationId'>,
): Promise<ErasedUser | undefined> {
  const [row] = await sql<
    {
      events: string
      erased_at: Date
      key_id: string | null
      months: string[]
      name: string | null
    }[]
  >`
    with last as materialized (
      select u.events, u.erased_at, u.key_id, to_json(u.exported_months) as months
      from erased_names n
        join erased_users u on u.project_id = n.project_id and u.id = n.erased_user_id
      where n.project_id = ${projectId} and n.is_user_id
        and n.hash = decode(${key.hash(projectId, userId)}, 'hex')
      order by u.erased_at desc
      limit 1
    )
    select u.events, u.erased_at, u.key_id, u.months, k.name
    from last u
      left join api_keys k on k.id = u.key_id
  `
  return (
    row && {
      events: Number(row.events),
      erasedAt: row.erased_at,
      key: row.key_id === null ? null : { id: row.key_id, name: row.name ?? '' },
      exportedMonths: row.months,
    }
  )
}

/** Returns the names in the list of the given erasures. */
export async function readErasedNames(
  sql: Queryable,
  key: ErasureKey,
  erasedUserIds: readonly string[],
): Promise<ErasedName[]> {
  const rows = await sql<Omit<ErasedName, 'erasureKeyId'>[]>`
    select
      u.id as "erasedUserId", u.project_id as "projectId", n.is_user_id as "isUserId",
      encode(n.hash, 'hex') as hash, u.erased_at as "erasedAt", u.key_id as "keyId"
    from erased_users u
      join erased_names n on n.project_id = u.project_id and n.erased_user_id = u.id
    where u.id = any(${toArray(erasedUserIds)}::uuid[])
  `
  return rows.map(row => ({ ...row, erasureKeyId: key.id }))
}

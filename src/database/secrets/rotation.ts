import { randomBytes } from 'node:crypto'
import { NIL_UUID } from '../../base/ids.ts'
import { toArray } from '../arrays.ts'
import { LOCKS, toLock } from '../locks.ts'
import type { Queryable, Sql, Tx } from '../sql.ts'
import {
  openSecrets,
  replaceCanary,
  type SecretSource,
  readSecretFile,
  replaceSecretFile,
  toSecretFile,
} from './open-secrets.ts'
import type { Secrets } from './secrets.ts'

/** A table with sealed columns, and a uuid `id` as its primary key. */
export interface SealedTable {
  table: string
  columns: readonly string[]
}

export interface RotationResult {
  /** True if a new APP_SECRET was created. Operators change a configured one themselves. */
  isNew: boolean
  /** The number of texts that were sealed again. */
  resealed: number
}

const BATCH = 200

/**
 * Seals all secrets again with the current APP_SECRET. Creates a new one first if it is stored in
 * DATA_DIR. Servers may run meanwhile. An interrupted rotation can be repeated, because the former
 * secret still opens. Throws if another rotation is running.
 */
export async function rotateSecrets(
  sql: Sql,
  source: SecretSource,
  tables: readonly SealedTable[],
): Promise<RotationResult> {
  return withSecretsLock(sql, ensureHeld => rotate(sql, source, tables, ensureHeld))
}

/**
 * Runs `work` under an advisory lock. Throws if another rotation or reset is running. `ensureHeld`
 * throws if the lock was lost with its connection.
 */
export async function withSecretsLock<Result>(
  sql: Sql,
  work: (ensureHeld: () => Promise<void>) => Promise<Result>,
): Promise<Result> {
  // Concurrent rotations could drop a secret from the file while texts are still sealed with it.
  const holder = await sql.reserve()
  try {
    const [{ isAlone }] = await holder<[{ isAlone: boolean }]>`
      select pg_try_advisory_lock(${toLock(holder, 'secrets')}) as "isAlone"
    `
    if (!isAlone) throw new Error('Another rotation or reset is running. Wait until it has ended.')
    return await work(() => ensureHeld(holder))
  } finally {
    await holder`select pg_advisory_unlock_all()`.catch(() => {})
    holder.release()
  }
}

async function ensureHeld(holder: Queryable): Promise<void> {
  const rows = await holder`
    select from pg_locks
    where pid = pg_backend_pid() and locktype = 'advisory' and classid::bigint = ${LOCKS.secrets}
  `
  if (rows.count === 0) throw new Error('The lock of the rotation was lost. Rotate again.')
}

async function rotate(
  sql: Sql,
  source: SecretSource,
  tables: readonly SealedTable[],
  ensureHeld: () => Promise<void>,
): Promise<RotationResult> {
  const secrets = await openSecrets(sql, source)
  const file = source.appSecret ? undefined : toSecretFile(source.dataDir)
  const [former, ...older] = (file && readSecretFile(file)) || []
  const fresh = randomBytes(32)
  if (file && former) replaceSecretFile(file, [fresh, former, ...older])
  let resealed = 0
  for (const { table, columns } of tables) {
    for (const column of columns) {
      resealed += await forEachBatch((after, limit) => {
        const part = { table, column, after, limit }
        return sql.begin(tx => resealBatch(tx, secrets, part)) as Promise<string[]>
      })
    }
  }
  await replaceCanary(sql, secrets)
  // Another rotation has a newer secret in the file otherwise.
  await ensureHeld()
  // Kept for one more rotation, because a server may have sealed with the former secret until now.
  if (file && former) replaceSecretFile(file, [fresh, former])
  return { isNew: file !== undefined, resealed }
}

/**
 * Calls `processBatch` for all rows of a table in batches. It processes the rows that come `after`
 * a uuid, at most `limit`, and returns their ids in ascending order. Returns the number of rows.
 */
export async function forEachBatch(
  processBatch: (after: string, limit: number) => Promise<readonly string[]>,
): Promise<number> {
  let count = 0
  let after = NIL_UUID
  for (;;) {
    const ids = await processBatch(after, BATCH)
    count += ids.length
    after = ids.at(-1) ?? after
    if (ids.length < BATCH) return count
  }
}

/** Seals a column again in one batch of rows. Returns their ids. */
async function resealBatch(
  tx: Tx,
  secrets: Secrets,
  { table, column, after, limit }: { table: string; column: string; after: string; limit: number },
): Promise<string[]> {
  const rows = await tx<{ id: string; sealed: string }[]>`
    select id, ${tx(column)} as sealed
    from ${tx(table)}
    where id > ${after} and not starts_with(${tx(column)}, ${`v1.${secrets.keyId}.`})
    order by id
    limit ${limit}
    for update
  `
  const resealed = rows.map(({ id, sealed }) => {
    const cell = { table, column, rowId: id }
    return secrets.seal(secrets.open(sealed, cell), cell)
  })
  await tx`
    update ${tx(table)} t set ${tx(column)} = n.sealed
    from unnest(${toArray(rows.map(({ id }) => id))}::uuid[], ${toArray(resealed)}::text[]) as n (id, sealed)
    where t.id = n.id
  `
  return rows.map(({ id }) => id)
}

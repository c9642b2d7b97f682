import { randomBytes } from 'node:crypto'
import { toArray } from '../db/arrays.ts'
import type { Sql, Tx } from '../db/sql.ts'
import { NIL_UUID } from '../ids.ts'
import {
  openSecrets,
  replaceCanary,
  type SecretSource,
  readSecretFile,
  replaceSecretFile,
  toSecretFile,
} from './open-secrets.ts'
import type { Secrets } from './secrets.ts'

/** A table with sealed columns, each for the place of its row's `id`, a uuid. */
export interface SealedTable {
  table: string
  columns: readonly string[]
}

export interface RotationResult {
  /** Whether a new secret was made. A configured one is changed by the operator. */
  isNew: boolean
  /** The number of texts sealed anew. */
  resealed: number
}

const BATCH = 200
/** The advisory lock of rotations; an arbitrary number. */
const LOCK = 7_134_203_963

/**
 * Seals everything with the current APP_SECRET, or with a new one when it is kept in DATA_DIR. Servers may run meanwhile.
 * An interrupted rotation can be repeated: the former secret still opens. Throws when another rotation runs.
 */
export async function rotateSecrets(
  sql: Sql,
  source: SecretSource,
  tables: readonly SealedTable[],
): Promise<RotationResult> {
  return withSecretsLock(sql, () => rotate(sql, source, tables))
}

/** Runs `work` alone; throws when another rotation or reset runs. */
export async function withSecretsLock<Result>(
  sql: Sql,
  work: () => Promise<Result>,
): Promise<Result> {
  // Two rotations at once could lose a secret of the file that texts are sealed with.
  const holder = await sql.reserve()
  try {
    const [{ isAlone }] = await holder<[{ isAlone: boolean }]>`
      select pg_try_advisory_lock(${LOCK}::bigint) as "isAlone"
    `
    if (!isAlone) throw new Error('Another rotation is under way: wait until it has ended')
    return await work()
  } finally {
    await holder`select pg_advisory_unlock_all()`
    holder.release()
  }
}

async function rotate(
  sql: Sql,
  source: SecretSource,
  tables: readonly SealedTable[],
): Promise<RotationResult> {
  const secrets = await openSecrets(sql, source)
  const file = source.appSecret ? undefined : toSecretFile(source.dataDir)
  const [former, ...older] = (file && readSecretFile(file)) || []
  const fresh = randomBytes(32)
  if (file && former) replaceSecretFile(file, [fresh, former, ...older])
  let resealed = 0
  for (const { table, columns } of tables) {
    for (const column of columns) resealed += await resealColumn(sql, secrets, table, column)
  }
  await replaceCanary(sql, secrets)
  // A server may have sealed with the former secret until now.
  if (file && former) replaceSecretFile(file, [fresh, former])
  return { isNew: file !== undefined, resealed }
}

async function resealColumn(
  sql: Sql,
  secrets: Secrets,
  table: string,
  column: string,
): Promise<number> {
  let resealed = 0
  let after = NIL_UUID
  for (;;) {
    const ids = (await sql.begin(tx =>
      resealBatch(tx, secrets, { table, column, after }),
    )) as string[]
    resealed += ids.length
    after = ids.at(-1) ?? after
    if (ids.length < BATCH) return resealed
  }
}

/** Returns the ids of the rows. */
async function resealBatch(
  tx: Tx,
  secrets: Secrets,
  { table, column, after }: { table: string; column: string; after: string },
): Promise<string[]> {
  const rows = await tx<{ id: string; sealed: string }[]>`
    select id, ${tx(column)} as sealed
    from ${tx(table)}
    where id > ${after} and not starts_with(${tx(column)}, ${`v1.${secrets.keyId}.`})
    order by id
    limit ${BATCH}
    for update
  `
  const resealed = rows.map(({ id, sealed }) => {
    const place = { table, column, rowId: id }
    return secrets.seal(secrets.open(sealed, place), place)
  })
  await tx`
    update ${tx(table)} t set ${tx(column)} = n.sealed
    from unnest(${toArray(rows.map(({ id }) => id))}::uuid[], ${toArray(resealed)}::text[]) as n (id, sealed)
    where t.id = n.id
  `
  return rows.map(({ id }) => id)
}

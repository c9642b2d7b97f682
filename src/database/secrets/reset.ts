import { randomBytes } from 'node:crypto'
import type { Sql, Tx } from '../sql.ts'
import {
  toAppKey,
  createSecrets,
  UnreadableSecret,
  type SealedCell,
  type Secrets,
} from './secrets.ts'
import {
  findSecretsProblem,
  loadSecrets,
  hasAppSecret,
  replaceCanary,
  type SecretSource,
} from './open-secrets.ts'
import { forEachBatch, withSecretsLock, type SealedTable } from './rotation.ts'

/** Describes and removes the secrets of a table that can no longer be opened. */
export interface SecretLoss extends SealedTable {
  /**
   * Describes the consequences of losing the secrets of `count` rows, as a sentence without a
   * period.
   */
  describe(count: number): string
  /** Removes the secrets of rows. `ids` are uuids. */
  drop(tx: Tx, ids: readonly string[], secrets: Secrets): Promise<void>
}

/** The number of lost rows by table, and the consequences in sentences. */
export interface ResetResult {
  lost: Record<string, number>
  consequences: string[]
}

/** Thrown to roll back the transaction of a dry run. */
class DryRun extends Error {}

/**
 * Makes the database usable with the current APP_SECRET, and removes secrets that another one has
 * sealed. Returns what is lost. Changes nothing unless `isConfirmed`. Throws if all secrets can be
 * opened.
 */
export async function resetSecrets(
  sql: Sql,
  source: SecretSource,
  { losses, isConfirmed }: { losses: readonly SecretLoss[]; isConfirmed: boolean },
): Promise<ResetResult> {
  return withSecretsLock(sql, async () => {
    if ((await findSecretsProblem(sql, source)) === undefined) {
      throw new Error('Nothing is lost. The APP_SECRET opens the secrets in the database.')
    }
    const reset: ResetResult = { lost: {}, consequences: [] }
    try {
      await sql.begin(async tx => {
        // A dry run must not create the file.
        const secrets =
          isConfirmed || hasAppSecret(source) ? loadSecrets(source, isConfirmed) : newSecrets()
        for (const loss of losses) {
          const ids = await listLost(tx, loss, secrets)
          if (ids.length === 0) continue
          reset.lost[loss.table] = ids.length
          reset.consequences.push(loss.describe(ids.length))
          await loss.drop(tx, ids, secrets)
        }
        await replaceCanary(tx, secrets)
        if (!isConfirmed) throw new DryRun()
      })
    } catch (error) {
      if (!(error instanceof DryRun)) throw error
    }
    return reset
  })
}

/** Locks all rows of a table. Returns the ids of those with a sealed text that cannot be opened. */
async function listLost(
  tx: Tx,
  { table, columns }: SealedTable,
  secrets: Secrets,
): Promise<string[]> {
  const lost: string[] = []
  await forEachBatch(async (after, limit) => {
    const rows = await tx<Record<string, string>[]>`
      select id, ${tx(columns)}
      from ${tx(table)}
      where id > ${after}
      order by id
      limit ${limit}
      for update
    `
    for (const { id = '', ...sealed } of rows) {
      const texts = Object.entries(sealed).filter(([, text]) => text !== null)
      const isOpen = ([column, text]: [string, string]) =>
        canOpen(secrets, text, { table, column, rowId: id })
      if (!texts.every(isOpen)) lost.push(id)
    }
    return rows.map(({ id = '' }) => id)
  })
  return lost
}

function canOpen(secrets: Secrets, text: string, cell: SealedCell): boolean {
  try {
    secrets.open(text, cell)
    return true
  } catch (error) {
    if (error instanceof UnreadableSecret) return false
    throw error
  }
}

function newSecrets(): Secrets {
  const keys = [toAppKey(randomBytes(32))]
  return createSecrets(() => keys)
}

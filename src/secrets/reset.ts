import { randomBytes } from 'node:crypto'
import type { Sql, Tx } from '../db/sql.ts'
import { NIL_UUID } from '../ids.ts'
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
import { withSecretsLock, type SealedTable } from './rotation.ts'

const BATCH = 200

/** How a sealed table loses rows whose secrets can no longer be opened. */
export interface SecretLoss extends SealedTable {
  /** Describes the loss of `count` rows, as a sentence without its full stop. */
  describe(count: number): string
  /** Removes the secrets of the rows; ids are uuids. */
  drop(tx: Tx, ids: readonly string[], secrets: Secrets): Promise<void>
}

/** The loss: the number of rows by table, and what it means. */
export interface ResetResult {
  lost: Record<string, number>
  consequences: string[]
}

/** Rolls back the transaction of a rehearsal. */
class DryRun extends Error {}

/**
 * Binds the database to the current APP_SECRET, and drops what another one has sealed. Unless `isConfirmed`, it changes
 * nothing and returns what would be lost. Throws when the secrets can be opened.
 */
export async function resetSecrets(
  sql: Sql,
  source: SecretSource,
  { losses, isConfirmed }: { losses: readonly SecretLoss[]; isConfirmed: boolean },
): Promise<ResetResult> {
  return withSecretsLock(sql, async () => {
    if ((await findSecretsProblem(sql, source)) === undefined) {
      throw new Error('Nothing is lost: the APP_SECRET opens what the database keeps')
    }
    const reset: ResetResult = { lost: {}, consequences: [] }
    try {
      await sql.begin(async tx => {
        // A rehearsal leaves no file behind.
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

/** Locks and returns the rows with a text that cannot be opened. */
async function listLost(
  tx: Tx,
  { table, columns }: SealedTable,
  secrets: Secrets,
): Promise<string[]> {
  const lost: string[] = []
  let after = NIL_UUID
  for (;;) {
    const rows = await tx<Record<string, string>[]>`
      select id, ${tx(columns)}
      from ${tx(table)}
      where id > ${after}
      order by id
      limit ${BATCH}
      for update
    `
    for (const { id = '', ...sealed } of rows) {
      const texts = Object.entries(sealed).filter(([, text]) => text !== null)
      const isOpen = ([column, text]: [string, string]) =>
        canOpen(secrets, text, { table, column, rowId: id })
      if (!texts.every(isOpen)) lost.push(id)
      after = id
    }
    if (rows.length < BATCH) return lost
  }
}

function canOpen(secrets: Secrets, text: string, place: SealedCell): boolean {
  try {
    secrets.open(text, place)
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

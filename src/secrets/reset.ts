import { randomBytes } from 'node:crypto'
import type { Sql, Tx } from '../db/sql.ts'
import { toAppKey, createSecrets, Unreadable, type Place, type Secrets } from './secrets.ts'
import {
  findProblem,
  findSecrets,
  hasSecret,
  replaceCanary,
  type SecretSource,
} from './open-secrets.ts'
import { holdSecrets, type SealedTable } from './rotation.ts'

const BATCH = 200

/** How a sealed table loses rows whose secrets can no longer be opened. */
export interface Loss extends SealedTable {
  /** Describes the loss of `count` rows, as a sentence without its full stop. */
  what(count: number): string
  /** Removes the secrets of the rows; ids are uuids. */
  drop(tx: Tx, ids: readonly string[], secrets: Secrets): Promise<void>
}

/** The loss: the number of rows by table, and what it means. */
export interface Reset {
  lost: Record<string, number>
  means: string[]
}

/** Rolls back the transaction of a rehearsal. */
class Rehearsed extends Error {}

/**
 * Binds the database to the current APP_SECRET, and drops what another one has sealed. Unless `isMeant`, it changes
 * nothing and returns what would be lost. Throws when the secrets can be opened.
 */
export async function resetSecrets(
  sql: Sql,
  source: SecretSource,
  { losses, isMeant }: { losses: readonly Loss[]; isMeant: boolean },
): Promise<Reset> {
  return holdSecrets(sql, async () => {
    if ((await findProblem(sql, source)) === undefined) {
      throw new Error('Nothing is lost: the APP_SECRET opens what the database keeps')
    }
    const reset: Reset = { lost: {}, means: [] }
    try {
      await sql.begin(async tx => {
        // A rehearsal leaves no file behind.
        const secrets = isMeant || hasSecret(source) ? findSecrets(source, isMeant) : newSecrets()
        for (const loss of losses) {
          const ids = await listLost(tx, loss, secrets)
          if (ids.length === 0) continue
          reset.lost[loss.table] = ids.length
          reset.means.push(loss.what(ids.length))
          await loss.drop(tx, ids, secrets)
        }
        await replaceCanary(tx, secrets)
        if (!isMeant) throw new Rehearsed()
      })
    } catch (error) {
      if (!(error instanceof Rehearsed)) throw error
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
  let after = '00000000-0000-0000-0000-000000000000'
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

function canOpen(secrets: Secrets, text: string, place: Place): boolean {
  try {
    secrets.open(text, place)
    return true
  } catch (error) {
    if (error instanceof Unreadable) return false
    throw error
  }
}

function newSecrets(): Secrets {
  const keys = [toAppKey(randomBytes(32))]
  return createSecrets(() => keys)
}

import { ensureSetup } from '../accounts/owners.ts'
import type { Config } from '../config.ts'
import type { Sql } from '../db/sql.ts'
import { ensureFirstKey } from '../keys/first-start.ts'

/** What a start tells once, to whoever looks at its terminal. */
export interface First {
  /** The token of the first key, when this start made it. */
  firstKey: string | undefined
  /** The token of a fresh setup link, while the installation has no owner. */
  setupToken: string | undefined
}

export const NOTHING_FIRST: First = { firstKey: undefined, setupToken: undefined }

/** Gives an empty installation its first key, and a way to its first owner. */
export async function ensureFirst(sql: Sql, { owner }: Pick<Config, 'owner'>): Promise<First> {
  return { firstKey: await ensureFirstKey(sql), setupToken: await ensureSetup(sql, owner) }
}

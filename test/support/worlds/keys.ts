import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import * as list from '../../../src/access/keys/keys.ts'
import * as keys from '../../../src/access/keys/keys.ts'
import type { ApiKey } from '../../../src/access/keys/schema.ts'
import type { Sql } from '../../../src/database/sql.ts'

/** Creates and ends keys like the command line, each in its own transaction. */
export async function createKey(
  sql: Sql,
  key: keys.NewKey,
): Promise<{ id: string; token: string }> {
  return sql.begin(tx => keys.createKey(tx, COMMAND_LINE, key))
}

export async function revokeKey(sql: Sql, projectId: string, id: string): Promise<void> {
  await sql.begin(tx => keys.revokeKey(tx, COMMAND_LINE, { projectId, id }))
}

export async function rotateKey(
  sql: Sql,
  projectId: string,
  old: { id: string; overlapHours?: number },
): Promise<{ id: string; token: string }> {
  return sql.begin(tx => keys.rotateKey(tx, COMMAND_LINE, { projectId, ...old }))
}

/** Returns the newest keys of a project. */
export async function listKeys(sql: Sql, projectId: string): Promise<ApiKey[]> {
  return (await list.listKeys(sql, projectId)).items
}

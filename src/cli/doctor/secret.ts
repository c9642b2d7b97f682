import type { Sql } from '../../db/sql.ts'
import { findProblem, type SecretSource } from '../../secrets/open-secrets.ts'
import { failed, ok, type Finding } from './finding.ts'

/** Whether what the database keeps secret can be opened; nothing of it, before its migration. */
export async function checkSecret(sql: Sql, source: SecretSource): Promise<Finding[]> {
  const [{ is_there }] = await sql<[{ is_there: boolean }]>`
    select to_regclass('sealed_canary') is not null as is_there
  `
  if (!is_there) return []
  const problem = await findProblem(sql, source)
  return [
    problem === undefined
      ? ok('APP_SECRET', "opens the database's secrets")
      : failed('APP_SECRET', problem),
  ]
}

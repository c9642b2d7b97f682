import type { Queryable } from '../../src/db/sql.ts'
import { parseId } from '../../src/ids.ts'

/** Makes the stored answers of a project older by `interval`, like `24 hours`. */
export async function ageAnswers(
  sql: Queryable,
  projectId: string,
  interval: string,
): Promise<void> {
  await sql`
    update idempotency_keys set expires_at = expires_at - ${interval}::interval
    where project_id = ${projectId}
  `
}

/** Makes the rate window of a key (`key_…`) older by `interval`. */
export async function ageWindow(sql: Queryable, keyId: string, interval: string): Promise<void> {
  await sql`
    update rate_windows set started_at = started_at - ${interval}::interval
    where key_id = ${parseId('key', keyId) ?? null}
  `
}

import type { Queryable } from '../../database/sql.ts'
import { hashSecret } from '../guard/secret.ts'

/**
 * Marks a state or the id of a logout token as used, for as long as it could be accepted. Returns
 * false if it was used before.
 */
export async function markUsed(sql: Queryable, value: string, seconds: number): Promise<boolean> {
  const marked = await sql`
    insert into openid_used (hash, expires_at)
    values (decode(${hashSecret(value)}, 'hex'), now() + ${seconds} * interval '1 second')
    on conflict (hash) do nothing
  `
  return marked.count === 1
}

import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import { listChannelNames } from '../channels/channels.ts'
import { listUserNames } from '../identities/user-names.ts'
import type { CardGroup } from './schema.ts'

/** References of users that are resolved. The rarer ones count as users of their own. */
const MAX_REFERENCES = 1_000

/** Sums the counts of references, which are user_ids and aliases, by the user_id of their owner. */
export async function sumByUser(
  sql: Queryable,
  projectId: string,
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const references = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MAX_REFERENCES)
    .map(([reference]) => reference)
  const rows = await sql<{ alias: string; user_id: string }[]>`
    select r.reference as alias, u.user_id
    from unnest(${toArray(references)}::text[]) as r (reference)
      cross join lateral user_of_name(${projectId}, r.reference) as u (user_id)
    where u.user_id <> r.reference
  `
  const owners = new Map(rows.map(({ alias, user_id }) => [alias, user_id]))
  const sums = new Map<string, number>()
  for (const [reference, total] of counts) {
    const user = owners.get(reference) ?? reference
    sums.set(user, (sums.get(user) ?? 0) + total)
  }
  return sums
}

/** Returns the names of channels (by uuid) and users (by user_id). Other values have none. */
export async function nameValues(
  sql: Queryable,
  projectId: string,
  { groupBy, values }: { groupBy: CardGroup | null; values: readonly string[] },
): Promise<Map<string, string>> {
  if (values.length === 0) return new Map()
  if (groupBy === 'channel') return listChannelNames(sql, projectId, values)
  if (groupBy !== 'user') return new Map()
  const users = await listUserNames(sql, projectId, values)
  return new Map(users.map(({ userId, name }) => [userId, name]))
}

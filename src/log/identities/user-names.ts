import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'

/** A user with the name to show for it. */
export interface UserName {
  userId: string
  name: string
}

/**
 * Returns the names of those of `userIds` that have one, at most 200 characters long: the first of
 * the SQL function `names_in_properties`, or else an alias that looks like an e-mail address.
 */
export async function listUserNames(
  sql: Queryable,
  projectId: string,
  userIds: readonly string[],
): Promise<UserName[]> {
  const rows = await sql<{ user_id: string; name: string | null }[]>`
    select i.user_id, left(coalesce((names_in_properties(i.properties))[1], a.alias), 200) as name
    from identities i
      left join lateral (
        select a.alias
        from aliases a
        where a.project_id = i.project_id and a.user_id = i.user_id and a.alias like '%_@_%'
        order by a.created_at, a.alias
        limit 1
      ) a on true
    where i.project_id = ${projectId} and i.user_id = any(${toArray(userIds)}::text[])
  `
  return rows.flatMap(({ user_id, name }) => (name === null ? [] : [{ userId: user_id, name }]))
}

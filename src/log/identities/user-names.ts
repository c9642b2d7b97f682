import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'

/** A user with the name to show for it. */
export interface UserName {
  userId: string
  name: string
}

/**
 * Returns the names of those of `userIds` that have one, at most 200 characters long: the property
 * `name` or one of its usual spellings, or the first and the last name, or the e-mail address. An
 * alias that looks like an e-mail address comes last.
 */
export async function listUserNames(
  sql: Queryable,
  projectId: string,
  userIds: readonly string[],
): Promise<UserName[]> {
  const rows = await sql<{ user_id: string; name: string | null }[]>`
    select i.user_id, left(coalesce(p.name, p.parts, p.email, a.alias), 200) as name
    from identities i
      cross join lateral (
        select
          (array_agg(v.value order by v.rank) filter (where v.rank <= 6))[1] as name,
          string_agg(v.value, ' ' order by v.rank) filter (where v.rank between 7 and 10) as parts,
          max(v.value) filter (where v.rank = 11) as email
        from (
          select n.rank, trim(i.properties ->> n.key) as value
          from unnest(array[
            'name', 'fullName', 'full_name', 'displayName', 'display_name', '$name',
            'firstName', 'first_name', 'lastName', 'last_name', 'email'
          ]) with ordinality as n (key, rank)
          where json_typeof(i.properties -> n.key) = 'string'
        ) v
        where v.value <> ''
      ) p
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

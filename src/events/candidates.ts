import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import type { Criteria } from './criteria.ts'
import type { Window } from './walk.ts'

/**
 * Selects the `seq` of the candidates in a window, in its direction. Each driver has one index that can serve it: the
 * comparisons of rows below are what keeps the primary key from looking as good.
 */
export function toCandidates(
  sql: Queryable,
  projectId: string,
  criteria: Criteria,
  { driver, direction, range, most, spendMs }: Window,
): Fragment {
  const [first, last] = [String(range.first), String(range.last)]
  const order = direction === 'older' ? sql`desc` : sql`asc`
  switch (driver) {
    case 'log':
      return sql`
        select e.seq
        from events e
        where e.project_id = ${projectId} and e.seq between ${first} and ${last}
        order by e.seq ${order}
        limit ${most}
      `
    case 'channels':
      return sql`
        select found.seq
        from unnest(${toArray(criteria.channelIds ?? [])}::uuid[]) as asked (id)
          cross join lateral (
            select e.seq
            from events e
            where e.project_id = ${projectId}
              and (e.channel_id, e.seq) >= (asked.id, ${first}::bigint)
              and (e.channel_id, e.seq) <= (asked.id, ${last}::bigint)
            order by e.channel_id ${order}, e.seq ${order}
            limit ${most}
          ) found
        order by found.seq ${order}
        limit ${most}
      `
    case 'users':
      return sql`
        select found.seq
        from unnest(${toArray(criteria.references ?? [])}::text[]) as asked (reference)
          cross join lateral (
            select e.seq
            from events e
            where e.project_id = ${projectId} and e.user_ref is not null
              and (e.user_ref, e.seq) >= (asked.reference, ${first}::bigint)
              and (e.user_ref, e.seq) <= (asked.reference, ${last}::bigint)
            order by e.user_ref ${order}, e.seq ${order}
            limit ${most}
          ) found
        order by found.seq ${order}
        limit ${most}
      `
    case 'tokens':
      return sql`
        select f.seq
        from find_events(
          ${projectId}, ${toArray(criteria.channelIds ?? [])}::uuid[],
          ${toArray(criteria.sources.is)}::text[], ${toArray(criteria.tags.is)}::text[],
          ${toArray(criteria.lexemes)}::text[], ${first}, ${last}, ${direction === 'older'}, ${most},
          ${spendMs}
        ) as f (seq)
      `
  }
}

import type { Queryable } from '../../src/database/sql.ts'

/** Returns sentences where event_counts differs from the counts of the project's events. */
export async function findWrongCounts(sql: Queryable, projectId: string): Promise<string[]> {
  const wrong = await sql<{ hour: Date; kept: string | null; counted: string | null }[]>`
    select hour, c.n as kept, e.n as counted
    from (
      select hour, channel_id, n from event_counts where project_id = ${projectId}
    ) c
      full join (
        select hour_of(occurred_at) as hour, channel_id, count(*) as n
        from events
        where project_id = ${projectId} and deleted_at is null
        group by 1, 2
      ) e using (hour, channel_id)
    where c.n is distinct from e.n
  `
  return wrong.map(
    ({ hour, kept, counted }) => `the count of hour ${hour} is ${kept}, and should be ${counted}`,
  )
}

import { expect } from 'bun:test'
import type { Queryable } from '../../src/db/sql.ts'

/** Expects event_counts to be what counting the project's events gives. */
export async function expectExactCounts(sql: Queryable, projectId: string): Promise<void> {
  const wrong = await sql`
    select hour, channel_id, c.n as kept, e.n as counted
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
  expect([...wrong]).toEqual([])
}

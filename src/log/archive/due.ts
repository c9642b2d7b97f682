import type { Queryable } from '../../database/sql.ts'
import type { DueMonth } from './archive.ts'

/** The settings that decide which events are due. */
export interface DueOptions {
  afterDays: number
}

interface DueRow {
  organization_id: string
  project_id: string
  month: string
  is_whole: boolean
}

/**
 * Lists the oldest month of each project that has due events. A whole month is due when it ended
 * `afterDays` ago. Before that, those events are due that their channel does not keep any longer.
 */
export async function listDueMonths(
  sql: Queryable,
  { afterDays }: DueOptions,
): Promise<DueMonth[]> {
  const rows = await sql<DueRow[]>`
    with live as materialized (
      select p.id, p.organization_id, p.keep_days from projects p where p.deleted_at is null
    ), oldest as (
      select p.organization_id, p.id as project_id, e.created_at, true as is_whole
      from live p
        cross join lateral oldest_visible_event(p.id) e
      where e.created_at < ${wholeMonthsEnd(sql, afterDays)}
    ), expired as (
      select p.organization_id, p.id as project_id, min(o.created_at) as created_at, false as is_whole
      from live p
        join lateral channels_of(p.id) c on coalesce(c.keep_days, p.keep_days) is not null
        cross join lateral (
          select oldest_event_at(c.project_id, c.id) as created_at, retention_cutoff(c.project_id, c.id) as cutoff
          offset 0
        ) o
      where o.created_at < o.cutoff
      group by p.organization_id, p.id
    )
    select distinct on (d.project_id)
      d.organization_id, d.project_id, to_char(d.created_at, 'YYYY-MM') as month, d.is_whole
    from (select * from oldest union all select * from expired) d
    order by d.project_id, d.created_at, d.is_whole desc
  `
  return rows.map(row => ({
    organizationId: row.organization_id,
    projectId: row.project_id,
    month: row.month,
    isWhole: row.is_whole,
  }))
}

/** The start of the first month that is not due as a whole. The session's time zone is UTC. */
function wholeMonthsEnd(sql: Queryable, afterDays: number) {
  return sql`date_trunc('month', now() - make_interval(days => ${afterDays}))`
}

/** Orders the due months so that organizations take turns. */
export function takeTurns(due: readonly DueMonth[]): DueMonth[] {
  const rounds: DueMonth[][] = []
  const counts = new Map<string, number>()
  for (const month of due) {
    const round = counts.get(month.organizationId) ?? 0
    counts.set(month.organizationId, round + 1)
    ;(rounds[round] ??= []).push(month)
  }
  return rounds.flat()
}

import { DamagedFiles } from '../base/errors.ts'
import { toId } from '../base/ids.ts'
import { quoteIdentifier } from './copy.ts'
import { toArray } from './arrays.ts'
import type { Sql, Tx } from './sql.ts'

/**
 * Throws unless each table has as many rows in its indexes as were read from its file. A file that
 * was cut off ends early, without an error. Its indexes are other files. `rows` are the numbers of
 * rows by table, in the snapshot of `tx`.
 */
export async function checkRows(tx: Tx, rows: Readonly<Record<string, number>>): Promise<void> {
  await tx`set local enable_seqscan = off`
  await tx`set local enable_bitmapscan = off`
  for (const [name, read] of Object.entries(rows)) {
    const [row] = await tx.unsafe<[{ n: string }]>(
      `select count(*) as n from ${quoteIdentifier(name)}`,
    )
    if (Number(row.n) !== read)
      throw new DamagedFiles(
        `The table ${name} has ${row.n} rows by its index, and ${read} in its file.`,
      )
  }
}

/** A project whose counts by the hour are not those of its visible events. */
export interface WrongCounts {
  /** A uuid. */
  projectId: string
  /** The number of visible events, and their number by the counts. */
  found: number
  counted: number
}

/**
 * Returns the projects whose counts of events are wrong in the snapshot of `tx`, at most 100.
 * Either the counts are wrong, or a damaged table has lost events and its indexes were made anew.
 * Deletion of a project removes both in steps.
 */
export async function findWrongCounts(tx: Tx): Promise<WrongCounts[]> {
  const wrong = await tx<{ project_id: string; counted: string; found: string }[]>`
    with counts as materialized (
      select
        project_id, coalesce(c.n, 0) as counted, coalesce(e.n, 0) - coalesce(d.n, 0) as found
      from (select project_id, sum(n) as n from event_counts group by project_id) c
        full join (select project_id, count(*) as n from events group by project_id) e using (project_id)
        left join (
          select project_id, count(*) as n from events where deleted_at is not null group by project_id
        ) d using (project_id)
    )
    select k.project_id, k.counted, k.found
    from counts k
      join projects p on p.id = k.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    where k.counted <> k.found
    limit 100
  `
  return wrong.map(({ project_id: projectId, counted, found }) => ({
    projectId,
    found: Number(found),
    counted: Number(counted),
  }))
}

/** The most counts that one transaction corrects. */
const CORRECTED_ROWS = 10_000

/**
 * Corrects the counts of a project by their differences, so that events which come meanwhile stay
 * counted. Returns how many counts were wrong.
 */
export async function correctCounts(sql: Sql, project: string): Promise<number> {
  for (let corrected = 0; ;) {
    const wrong = await sql<{ hour: string; channel_id: string; missing: string }[]>`
      select hour::text as hour, channel_id, coalesce(e.n, 0) - coalesce(c.n, 0) as missing
      from (select hour, channel_id, n from event_counts where project_id = ${project}) c
        full join (
          select hour_of(occurred_at) as hour, channel_id, count(*) as n
          from events
          where project_id = ${project} and deleted_at is null
          group by 1, 2
        ) e using (hour, channel_id)
        join channels k on k.project_id = ${project} and k.id = channel_id
      where coalesce(e.n, 0) <> coalesce(c.n, 0)
      limit ${CORRECTED_ROWS}
    `
    if (wrong.length === 0) return corrected
    await sql.begin(async tx => {
      // As every writer of counts does.
      await tx`select from event_logs where project_id = ${project} for update`
      await tx`
        with wrong as materialized (
          select w.hour, w.channel_id, w.missing
          from unnest(
              ${toArray(wrong.map(({ hour }) => hour))}::timestamptz[],
              ${toArray(wrong.map(({ channel_id }) => channel_id))}::uuid[],
              ${toArray(wrong.map(({ missing }) => missing))}::bigint[]
            ) as w (hour, channel_id, missing)
            join channels k on k.project_id = ${project} and k.id = w.channel_id
        ), emptied as (
          delete from event_counts c using wrong w
          where c.project_id = ${project} and c.hour = w.hour and c.channel_id = w.channel_id
            and c.n + w.missing <= 0
        ), changed as (
          update event_counts c set n = c.n + w.missing from wrong w
          where c.project_id = ${project} and c.hour = w.hour and c.channel_id = w.channel_id
            and c.n + w.missing > 0
        )
        insert into event_counts (project_id, hour, channel_id, n)
        select ${project}, hour, channel_id, missing from wrong where missing > 0
        on conflict do nothing
      `
    })
    corrected += wrong.length
  }
}

export const REMEDY_OF_COUNTS =
  'If events are missing, restore an older backup. If not, `tidings reindex` corrects the counts.'

/** Says which counts are wrong, in one sentence for each project. */
export function describeWrongCounts(wrong: readonly WrongCounts[]): string[] {
  return wrong.map(
    ({ projectId, found, counted }) =>
      `The project ${toId('prj', projectId)} has ${found} events, and ${counted} by its counts.`,
  )
}

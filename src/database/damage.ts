import { DamagedFiles } from '../base/errors.ts'
import { quoteIdentifier } from './copy.ts'
import type { Tx } from './sql.ts'

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

/**
 * Throws unless the visible events of each project are as many as its counts by the hour. Deletion
 * of a project removes both in steps.
 */
export async function checkEventCounts(tx: Tx): Promise<void> {
  const [wrong] = await tx<{ counted: string; found: string }[]>`
    with counts as materialized (
      select
        project_id, coalesce(c.n, 0) as counted, coalesce(e.n, 0) - coalesce(d.n, 0) as found
      from (select project_id, sum(n) as n from event_counts group by project_id) c
        full join (select project_id, count(*) as n from events group by project_id) e using (project_id)
        left join (
          select project_id, count(*) as n from events where deleted_at is not null group by project_id
        ) d using (project_id)
    )
    select k.counted, k.found
    from counts k
      join projects p on p.id = k.project_id and p.deleted_at is null
      join organizations o on o.id = p.organization_id and o.deleted_at is null
    where k.counted <> k.found
    limit 1
  `
  if (wrong)
    throw new DamagedFiles(
      `A project has ${wrong.found} events, and ${wrong.counted} by its counts.`,
    )
}

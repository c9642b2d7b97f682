import type { Fragment, Queryable } from '../../database/sql.ts'

/** The number of logs that one poll reads, and the number of projects that it returns. */
const SLICE = 5_000
export const MAX_FOUND = 1_000

/**
 * Finds projects whose log `l` is ahead of the cursor of a follower. `cursors` joins the cursors,
 * and `isAhead` compares. One call reads one slice of the logs, in the order of their project ids,
 * so its cost does not grow with the number of projects. `last` is the id to pass as `after` for
 * the next slice; undefined at the end.
 */
export async function findLogsAhead(
  sql: Queryable,
  after: string,
  { cursors, isAhead }: { cursors: Fragment; isAhead: Fragment },
): Promise<{ projectIds: string[]; last: string | undefined }> {
  const rows = await sql<{ project_id: string; is_found: boolean }[]>`
    with slice as materialized (
      select l.project_id, l.last_seq
      from event_logs l
      where l.project_id > ${after}
      order by l.project_id
      limit ${SLICE}
    )
    (
      select l.project_id, true as is_found
      from slice l
        left join ${cursors}
      where ${isAhead}
      limit ${MAX_FOUND}
    )
    union all
    -- The last row of a full slice. Rows come in the order of the ids.
    (select l.project_id, false from slice l limit 1 offset ${SLICE - 1})
  `
  return {
    projectIds: rows.filter(row => row.is_found).map(row => row.project_id),
    last: rows.find(row => !row.is_found)?.project_id,
  }
}

import { toArray } from '../../database/arrays.ts'
import type { Sql } from '../../database/sql.ts'
import type { KindName } from './kind.ts'

/**
 * The number of logs that one poll reads, and the number of projects that it returns. A poll takes
 * a few milliseconds.
 */
const SLICE = 5_000
const MAX_FOUND = 1_000

/**
 * Registers a kind of delivery. If it is new to this installation, its cursors begin at the present
 * end of each log.
 */
export async function registerKind(sql: Sql, kind: KindName): Promise<void> {
  await sql.begin(async tx => {
    const made = await tx`
      insert into delivery_kinds (kind) values (${kind}) on conflict (kind) do nothing
    `
    if (made.count === 0) return
    // A project that is created meanwhile has no cursor, so its log is dispatched from the first
    // event.
    await tx`
      with logs as materialized (select l.project_id, l.last_seq from event_logs l)
      insert into delivery_cursors (project_id, kind, seq)
      select l.project_id, ${kind}, l.last_seq from logs l
      on conflict (project_id, kind) do nothing
    `
  })
}

/**
 * Finds projects with events that a kind has not dispatched. One call reads one slice of the logs,
 * in the order of their project ids. Its cost does not grow with the number of projects. `last` is
 * the id to pass as `after` for the next slice; undefined at the end.
 */
export async function findProjectsWithNewEvents(
  sql: Sql,
  { kind, after }: { kind: KindName; after: string },
): Promise<{ projectIds: string[]; last: string | undefined }> {
  const rows = await sql<{ project_id: string; has_new_events: boolean }[]>`
    with slice as materialized (
      select l.project_id, l.last_seq
      from event_logs l
      where l.project_id > ${after}
      order by l.project_id
      limit ${SLICE}
    )
    (
      select s.project_id, true as has_new_events
      from slice s
        left join delivery_cursors c on c.project_id = s.project_id and c.kind = ${kind}
      where s.last_seq > coalesce(c.seq, 0)
      limit ${MAX_FOUND}
    )
    union all
    -- The last row of a full slice. Rows come in the order of the ids.
    (select s.project_id, false from slice s limit 1 offset ${SLICE - 1})
  `
  return {
    projectIds: rows.filter(row => row.has_new_events).map(row => row.project_id),
    last: rows.find(row => !row.has_new_events)?.project_id,
  }
}

/** Creates missing cursors, at the beginning of each log. */
export async function ensureCursors(
  sql: Sql,
  { kind, projectIds }: { kind: KindName; projectIds: readonly string[] },
): Promise<void> {
  await sql`
    insert into delivery_cursors (project_id, kind, seq)
    select l.project_id, ${kind}, 0
    from unnest(${toArray(projectIds)}::uuid[]) as w (project_id)
      cross join lateral log_of(w.project_id) l
    order by l.project_id
    on conflict (project_id, kind) do nothing
  `
}

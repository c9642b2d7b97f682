import { toArray } from '../db/arrays.ts'
import type { Sql, Tx } from '../db/sql.ts'
import type { DeliveryKind, KindName, EventRanges } from './kind.ts'
import { commitWithoutFsync } from '../db/delivery-settings.ts'

/**
 * The number of logs that one poll reads, and the number of projects that it returns. A poll takes
 * a few milliseconds.
 */
const SLICE = 5_000
const MAX_FOUND = 1_000

/**
 * A range of a project's log that is not dispatched yet: after `fromSeq`, up to and including
 * `toSeq`.
 */
export interface EventRange {
  projectId: string
  fromSeq: bigint
  toSeq: bigint
}

/** A range whose cursor is locked by the current transaction. */
export interface LockedRange extends EventRange {
  hasTargets: boolean
  /** How long its oldest event has waited, in ms; 0 for a project without targets. */
  lagMs: number
}

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
      insert into delivery_cursors (project_id, kind, seq)
      select project_id, ${kind}, last_seq from event_logs
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

/**
 * Locks the cursors of the given projects that have new events. It skips cursors that another
 * dispatcher holds. All events up to `toSeq` are visible to the transaction, because a log has no
 * gaps and is in commit order.
 */
export async function lockRanges(
  tx: Tx,
  { kind, projectIds }: { kind: DeliveryKind; projectIds: readonly string[] },
): Promise<LockedRange[]> {
  const rows = await tx<(Omit<LockedRange, 'fromSeq' | 'toSeq'> & Record<'from' | 'to', string>)[]>`
    select
      c.project_id as "projectId", c.seq as from, l.last_seq as to, t.has_targets as "hasTargets",
      coalesce((
        select extract(epoch from clock_timestamp() - e.created_at) * 1000
        from events e
        where t.has_targets and e.project_id = c.project_id and e.seq > c.seq
        order by e.seq
        limit 1
      ), 0)::float8 as "lagMs"
    from unnest(${toArray(projectIds)}::uuid[]) as w (project_id)
      join delivery_cursors c on c.project_id = w.project_id and c.kind = ${kind.name}
      join event_logs l on l.project_id = c.project_id
      cross join lateral (select ${kind.hasTargets(tx)} as has_targets) t
      cross join ${commitWithoutFsync(tx)}
    where l.last_seq > c.seq
    for update of c skip locked
  `
  return rows.map(({ from, to, ...range }) => ({
    ...range,
    fromSeq: BigInt(from),
    toSeq: BigInt(to),
  }))
}

/** Advances cursors that `lockRanges` has locked in this transaction. */
export async function advanceCursors(tx: Tx, kind: KindName, ranges: EventRanges): Promise<void> {
  await tx`
    update delivery_cursors c set seq = r.to_seq
    from unnest(${ranges.projectIds}::uuid[], ${ranges.toSeqs}::bigint[]) as r (project_id, to_seq)
    where c.project_id = r.project_id and c.kind = ${kind}
  `
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
      join event_logs l on l.project_id = w.project_id
    order by l.project_id
    on conflict (project_id, kind) do nothing
  `
}

/**
 * Limits ranges to `maxEvents` events in all. Each range gets an equal share, and long ranges also
 * get what short ranges leave unused.
 */
export function limitRanges(
  ranges: readonly EventRange[],
  maxEvents: number,
): EventRanges & { events: number } {
  const chosen: EventRange[] = []
  const byLength = ranges.toSorted((a, b) => Number(a.toSeq - a.fromSeq - (b.toSeq - b.fromSeq)))
  let events = 0
  for (const [nth, { projectId, fromSeq, toSeq }] of byLength.entries()) {
    const share = BigInt(Math.ceil((maxEvents - events) / (ranges.length - nth)))
    if (share === 0n) break
    const end = toSeq - fromSeq > share ? fromSeq + share : toSeq
    chosen.push({ projectId, fromSeq, toSeq: end })
    events += Number(end - fromSeq)
  }
  return {
    projectIds: toArray(chosen.map(({ projectId }) => projectId)),
    fromSeqs: toArray(chosen.map(({ fromSeq }) => String(fromSeq))),
    toSeqs: toArray(chosen.map(({ toSeq }) => String(toSeq))),
    events,
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../../database/arrays.ts'
import { WORKER_SETTINGS } from '../../database/session.ts'
import type { Fragment, Queryable, Sql } from '../../database/sql.ts'
import { findLogsAhead, MAX_FOUND } from './logs-ahead.ts'

/** The beginning of a segment is indexed once it has this many events. */
export const MIN_EVENTS = 512
/** The number of seqs of a segment, as in search_parts. */
export const SEGMENT_EVENTS = 4_096
/** A part of the search index has texts of up to this size, which take about a second to index. */
export const MAX_PART_BYTES = 2_000_000
/** Settings of the indexer's connection. Indexing a part of hostile text takes seconds. */
export const INDEXER_SETTINGS = { ...WORKER_SETTINGS, statement_timeout: 15_000 }

/**
 * A segment is indexed anew when nothing was deleted from it for this time, or when the first
 * deletion is a day old.
 */
const STALE_QUIET_S = 600
const MAX_STALE_S = 86_400
/** The number of stale segments that one look returns. */
export const MAX_STALE = 200
/** The pause while another process indexes the project. */
const BUSY_PAUSE_MS = 50

/** A project with events to index. Ids are uuids. */
export interface UnindexedProject {
  projectId: string
  organizationId: string
}

/** A segment of a project's log whose index names deleted events, or has words by former rules. */
export interface StaleSegment {
  projectId: string
  segment: string
  /** The time of the last deletion, as text. */
  lastAt: string
}

/** Of these projects, returns those that have enough events to index. */
export async function listUnindexed(
  sql: Queryable,
  projectIds: readonly string[],
): Promise<UnindexedProject[]> {
  return await sql<UnindexedProject[]>`
    select l.project_id as "projectId", p.organization_id as "organizationId"
    from unnest(${toArray(projectIds)}::uuid[]) as w (project_id)
      cross join lateral log_of(w.project_id) l
      join projects p on p.id = w.project_id and p.deleted_at is null
      left join lateral search_cursor_of(w.project_id) c on true
    where ${hasEnoughEvents(sql)}
  `
}

/** Finds projects that have enough events to index, slice by slice: see `findLogsAhead`. */
export function findUnindexed(sql: Queryable, after: string) {
  return findLogsAhead(sql, after, {
    cursors: sql`search_cursors c on c.project_id = l.project_id`,
    isAhead: hasEnoughEvents(sql),
  })
}

/** The events that could be indexed and are not, and how long the first of them could have been. */
export interface IndexLag {
  projects: number
  events: number
  seconds: number
}

/** Reads how far the search index is behind. It looks at 1,000 of the projects that are behind. */
export async function readIndexLag(sql: Queryable): Promise<IndexLag> {
  const [row] = await sql<[IndexLag]>`
    with behind as materialized (
      -- A deleted project has no log.
      select l.project_id, l.last_seq - coalesce(c.seq, 0) as events, coalesce(c.seq, 0) as seq
      from event_logs l
        left join search_cursors c on c.project_id = l.project_id
      where ${hasEnoughEvents(sql)}
      limit ${MAX_FOUND}
    )
    select
      count(*)::int as projects, coalesce(sum(late.events), 0)::float8 as events,
      coalesce(max(late.seconds), 0)::float8 as seconds
    from (
      select d.events, extract(epoch from now() - e.created_at) as seconds
      from behind d
        -- The event that made the log long enough.
        left join lateral first_event_from(d.project_id, least(d.seq + ${MIN_EVENTS}, (d.seq + 1) | 4095)) e on true
    ) late
  `
  return row
}

/** The condition that a log `l` with the cursor `c` has MIN_EVENTS, or the end of a segment. */
function hasEnoughEvents(sql: Queryable): Fragment {
  return sql`(
    l.last_seq - coalesce(c.seq, 0) >= ${MIN_EVENTS}
    or (l.last_seq + 1) >> 12 > (coalesce(c.seq, 0) + 1) >> 12
  )`
}

/**
 * Indexes the next part of a project's log. Returns the last indexed seq, the number of seqs that
 * this call indexed, and the last seq of the log. Returns undefined when another process indexes
 * the project, or when it is deleted.
 */
export async function indexNextEvents(
  sql: Queryable,
  projectId: string,
  { minEvents = MIN_EVENTS, maxBytes = MAX_PART_BYTES } = {},
): Promise<{ indexedSeq: bigint; indexed: number; lastSeq: bigint } | undefined> {
  const [row] = await sql<{ indexed_seq: string; indexed: number; last_seq: string }[]>`
    select indexed_seq, indexed, last_seq from index_next_events(${projectId}, ${minEvents}, ${maxBytes})
  `
  return (
    row && {
      indexedSeq: BigInt(row.indexed_seq),
      indexed: row.indexed,
      lastSeq: BigInt(row.last_seq),
    }
  )
}

/** Lists segments to index anew. Those with deletions wait for further ones. */
export async function listStaleSegments(sql: Queryable): Promise<StaleSegment[]> {
  return await sql<StaleSegment[]>`
    select project_id as "projectId", segment, last_at::text as "lastAt"
    from stale_segments
    where last_at < now() - make_interval(secs => ${STALE_QUIET_S})
      or first_at < now() - make_interval(secs => ${MAX_STALE_S})
      -- The clock was set back.
      or first_at > now() + interval '1 minute'
    limit ${MAX_STALE}
  `
}

/**
 * Indexes the parts of a stale segment anew, each in its own transaction. Returns false when
 * another process indexes the project.
 */
export async function refreshSegment(
  sql: Sql,
  { projectId, segment, lastAt }: StaleSegment,
): Promise<boolean> {
  const parts = await sql<{ seq: string }[]>`
    select first_seq as seq
    from search_parts
    where project_id = ${projectId}
      and first_seq between ${segment}::bigint << 12 and ${segment}::bigint << 12 | 4095
  `
  for (const { seq } of parts) {
    const [row] = await sql<[{ is_done: boolean }]>`
      select reindex_part(${projectId}, ${seq}) as is_done
    `
    if (!row.is_done) return false
  }
  await sql`select forget_empty_segment(${projectId}, ${segment})`
  // After a later deletion the row stays.
  await sql`
    delete from stale_segments
    where project_id = ${projectId} and segment = ${segment} and last_at = ${lastAt}::text::timestamptz
  `
  return true
}

/**
 * Indexes all indexed segments of a project anew, beside servers that append and search. Calls
 * `onSegment` with the number of segments so far. Returns the number of all.
 */
export async function reindexProject(
  sql: Sql,
  projectId: string,
  onSegment: (done: number) => void,
): Promise<number> {
  let done = 0
  for (let segment = 0n; ;) {
    const [row] = await sql<{ seq: string }[]>`
      select seq from search_cursors where project_id = ${projectId}
    `
    if (!row || segment << 12n > BigInt(row.seq)) return done
    const isDone = await sql.begin(async tx => {
      // A segment of hostile text takes longer than a statement of a server may.
      await tx`select set_config('statement_timeout', '0', true)`
      const [{ is_done }] = await tx<[{ is_done: boolean }]>`
        select reindex_segment(${projectId}, ${String(segment)}, ${MAX_PART_BYTES}) as is_done
      `
      return is_done
    })
    if (!isDone) {
      await sleep(BUSY_PAUSE_MS)
      continue
    }
    segment++
    onSegment(++done)
  }
}

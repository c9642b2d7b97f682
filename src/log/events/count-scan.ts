import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { toMatch } from './event-conditions.ts'
import {
  readVisited,
  scanLog,
  toCandidates,
  type ScanLimits,
  type VisitedCandidates,
} from './log-scan.ts'
import type { ResolvedFilters } from './resolved-filters.ts'
import { toSegment } from './seq-ranges.ts'

/** How the matches of a scan are counted. */
export interface MatchCounting {
  /** The columns of an event `e` that `counts` reads. */
  columns?: Fragment
  /** Selects the counts from the matches `met` of a batch. Each row has its number as `n`. */
  counts: Fragment
  /** How many matches the caller wants; by default all of them. */
  wanted?: number
  /** Counts the events after this seq, the oldest first; by default all, the newest first. */
  from?: bigint
  limits: ScanLimits
}

/**
 * Counts matches from the newest event back, batch by batch. `add` takes the counts of a batch, and
 * returns true if it needs no more. Returns the seq before which events are uncounted; undefined
 * if none are. With `from`, that is the last one that was counted. In a transaction, a batch that
 * times out undoes nothing else.
 */
export async function countMatches<Count extends { n: number }>(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  { columns, counts, wanted = Infinity, from, limits }: MatchCounting,
  add: (counts: Count[]) => boolean,
): Promise<bigint | undefined> {
  let endedAt: bigint | undefined
  const direction = from === undefined ? 'older' : 'newer'
  const last = from === undefined ? sql`min(seq)` : sql`max(seq)`
  const stoppedAt = await scanLog(resolved, { direction, from, wanted, ...limits }, async batch => {
    type Rows = (VisitedCandidates & (Count | { n: null }))[]
    const read = async (part: Queryable): Promise<Rows> => part<Rows>`
      with candidates as materialized (
        ${toCandidates(sql, projectId, resolved, batch)}
      ), met as materialized (
        select e.*
        from candidates
          cross join lateral (${toMatch(sql, projectId, resolved, columns)}) e
      ), seen as (
        select count(*)::int as candidates, ${last} as last_seq from candidates
      )
      select seen.candidates, seen.last_seq, c.*
      from seen
        left join (${counts}) c on true
    `
    const rows = (await ('savepoint' in sql ? (sql as Tx).savepoint(read) : read(sql))) as Rows
    const visited = readVisited(rows)
    const isDone = add(rows.filter(row => row.n !== null))
    if (isDone) endedAt = visited.lastSeq
    return { ...visited, isDone }
  })
  return endedAt ?? stoppedAt
}

/** The time from `afterMs` (inclusive) to `beforeMs` (exclusive). */
export interface Bounds {
  afterMs: number
  beforeMs: number
}

/**
 * Returns a time (milliseconds since 1970) from which counts are complete, if only events before
 * `seq` in the log are uncounted.
 */
export async function findCompleteSince(
  sql: Queryable,
  projectId: string,
  { afterMs, beforeMs }: Bounds,
  seq: bigint,
): Promise<number> {
  const { first } = toSegment(seq)
  const [row] = await sql<[{ at: Date | null }]>`
    select greatest(
      (
        select max(e.occurred_at)
        from (
          select e.occurred_at
          from events e
          where e.project_id = ${projectId} and e.seq >= ${String(first)} and e.seq < ${String(seq)}
          -- Keeps the planner from searching the index of time for the maximum.
          offset 0
        ) e
        where e.occurred_at < ${new Date(beforeMs)}
      ),
      (
        select max(s.last_at)
        from event_segments s
        where s.project_id = ${projectId} and s.segment < ${String(toSegment(seq).segment)}
          and s.last_at > ${new Date(afterMs)} and s.first_at < ${new Date(beforeMs)}
      )
    ) as at
  `
  const at = row.at ? row.at.getTime() : afterMs
  return Math.min(Math.max(at, afterMs), beforeMs)
}

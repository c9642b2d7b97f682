import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import { toMatch } from '../events/event-conditions.ts'
import { findCompleteSince } from '../events/histogram.ts'
import {
  readVisited,
  scanLog,
  toCandidates,
  type BatchResult,
  type ScanBatch,
  type VisitedCandidates,
  type ScanLimits,
} from '../events/log-scan.ts'
import type { ResolvedFilters } from '../events/resolved-filters.ts'
import type { Counts } from './channel-counts.ts'
import type { Period } from './period.ts'
import type { CardGroup } from './schema.ts'

const TIME_LIMIT_MS = 150
/** A scan ends after this many different values, because they stay in memory. */
const MAX_VALUES = 5_000
const MAX_VALUE_LENGTH = 200
/** Metadata may have 256 KiB, so the first batch is small. */
const FIRST_METADATA_BATCH = 16

/** The choices of one scan. */
export interface Counting {
  period: Period
  /** The field whose values are counted, if any. */
  groupBy: CardGroup | null
  /** The path of the value in the metadata. */
  path: readonly string[]
  hasPrevious: boolean
}

/** The matches of a scan. `completeSinceMs` tells how far it came; undefined: to the end. */
export interface ScannedCounts {
  all: Counts
  values: Map<string, number>
  completeSinceMs: number | undefined
}

/**
 * Counts the events that match filters from the newest back, for about 150 ms. Channels are counted
 * by their uuid, and users by the reference in the event. Tags are the only field of which an event
 * can have several values.
 */
export async function countValues(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  counting: Counting,
  limits: ScanLimits = {},
): Promise<ScannedCounts> {
  const { fromMs, toMs, previousFromMs } = counting.period
  const all = { total: 0, previous: 0 }
  const values = new Map<string, number>()
  let fullAt: bigint | undefined
  const options = {
    direction: 'older',
    from: undefined,
    wanted: Infinity,
    timeLimitMs: TIME_LIMIT_MS,
    ...(counting.groupBy === 'metadata' && { firstBatch: FIRST_METADATA_BATCH }),
    ...limits,
  } as const
  const stoppedAt = await scanLog(resolved, options, async batch => {
    const { found, ...visited } = await countBatch(sql, projectId, { resolved, counting, batch })
    for (const { value, isPrevious, n } of found) {
      if (value === null) all[isPrevious ? 'previous' : 'total'] += n
      else values.set(value, (values.get(value) ?? 0) + n)
    }
    if (values.size > MAX_VALUES) fullAt = visited.lastSeq
    return { ...visited, isDone: fullAt !== undefined }
  })
  const endedAt = fullAt ?? stoppedAt
  const bounds = { afterMs: counting.hasPrevious ? previousFromMs : fromMs, beforeMs: toMs }
  const completeSinceMs =
    endedAt === undefined ? undefined : await findCompleteSince(sql, projectId, bounds, endedAt)
  return { all, values, completeSinceMs }
}

/** The matches of a batch with one value; with any value, if it is null. */
interface Found {
  value: string | null
  isPrevious: boolean
  n: number
}

interface Batch {
  resolved: ResolvedFilters
  counting: Counting
  batch: ScanBatch
}

async function countBatch(
  sql: Queryable,
  projectId: string,
  { resolved, counting, batch }: Batch,
): Promise<Omit<BatchResult, 'isDone'> & { found: Found[] }> {
  const { fromMs, previousToMs } = counting.period
  const columns = sql`e.occurred_at, ${toValues(sql, counting)} as counted`
  const rows = await sql<(VisitedCandidates & (Found | { n: null }))[]>`
    with candidates as materialized (
      ${toCandidates(sql, projectId, resolved, batch)}
    ), met as materialized (
      select e.occurred_at < ${new Date(fromMs)} as is_previous, e.counted
      from candidates
        cross join lateral (${toMatch(sql, projectId, resolved, columns)}) e
      where e.occurred_at >= ${new Date(fromMs)} or e.occurred_at < ${new Date(previousToMs)}
    ), counts as (
      select null as value, m.is_previous, count(*)::float8 as n
      from met m
      group by m.is_previous
      union all
      select v.value, m.is_previous, count(*)::float8
      from met m
        cross join lateral unnest(m.counted) as v (value)
      where v.value is not null
      group by v.value, m.is_previous
    ), seen as (
      select count(*)::int as candidates, min(seq) as last_seq from candidates
    )
    select seen.candidates, seen.last_seq, c.value, c.is_previous as "isPrevious", c.n
    from seen
      left join counts c on true
  `
  return { ...readVisited(rows), found: rows.filter(row => row.n !== null) }
}

/** SQL for the values of an event `e` that are counted, as an array of texts. */
function toValues(sql: Queryable, { groupBy, path }: Counting): Fragment {
  switch (groupBy) {
    case null:
      return sql`'{}'::text[]`
    case 'channel':
      return sql`array[e.channel_id::text]`
    case 'tag':
      return sql`e.tags`
    case 'user':
      return sql`array[e.user_ref]`
    case 'source':
      return sql`array[e.source]`
    case 'metadata': {
      const keys = toArray(path)
      return sql`array[
        case when json_typeof(e.metadata #> ${keys}::text[]) in ('string', 'number', 'boolean')
          then left(e.metadata #>> ${keys}::text[], ${MAX_VALUE_LENGTH}) end
      ]`
    }
  }
}

import type { Queryable } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import { toMatch } from '../events/event-conditions.ts'
import { findCompleteSince, toBucket } from '../events/histogram.ts'
import {
  readVisited,
  scanLog,
  toCandidates,
  type BatchResult,
  type ScanBatch,
  type VisitedCandidates,
  type ScanLimits,
} from '../events/log-scan.ts'
import { resolveFilters, type ResolvedFilters } from '../events/resolved-filters.ts'
import type { SearchFilters } from '../events/search-filters.ts'
import { HOUR_MS, toEndMs, toTimeBuckets, type TimeBuckets } from '../events/time-buckets.ts'
import type { AlikeTitles } from './schema.ts'
import { nameValues } from './value-names.ts'

const DEFAULT_MS = 7 * 24 * HOUR_MS
const TIME_LIMIT_MS = 150
/** A scan ends after this many different shapes, because they stay in memory. */
const MAX_SHAPES = 5_000
const MAX_GROUPS = 50
const MAX_CHANNELS = 3
const MAX_BUCKETS = 30

/** The matches whose titles have one shape. */
interface Group {
  /** The newest title in the log. */
  example: string
  /** Counts by uuid. */
  channels: Map<string, number>
  total: number
  firstAt: Date
  lastAt: Date
  counts: number[]
}

export interface AlikeOptions {
  nowMs: number
  limits?: ScanLimits
}

/**
 * Groups the events that match filters by the shapes of their titles: see `shape_of_title` in
 * sql/functions/titles.sql. The default range is the last week before its end. Events are counted
 * from the newest back for about 150 ms, and `completeSince` tells how far that came.
 */
export async function groupAlike(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  { nowMs, limits = {} }: AlikeOptions,
): Promise<AlikeTitles> {
  // No event has a later timestamp, and the ends of buckets must be valid dates.
  const toMs = Math.min(filters.before ?? nowMs, nowMs + HOUR_MS)
  const fromMs = Math.min(filters.after ?? toMs - DEFAULT_MS, toMs - 1)
  const buckets = toTimeBuckets(fromMs, toMs, { maxCount: MAX_BUCKETS })
  const narrow = { ...filters, after: filters.after ?? fromMs }
  const resolved = await resolveFilters(sql, projectId, narrow)
  const groups = new Map<string, Group>()
  if (!resolved) return toAlikeTitles(sql, projectId, { buckets, groups, sinceMs: undefined })
  let fullAt: bigint | undefined
  const options = {
    direction: 'older',
    from: undefined,
    wanted: Infinity,
    timeLimitMs: TIME_LIMIT_MS,
    ...limits,
  } as const
  const stoppedAt = await scanLog(resolved, options, async batch => {
    const { found, ...visited } = await countBatch(sql, projectId, { resolved, buckets, batch })
    for (const part of found) addPart(groups, part, buckets)
    if (groups.size > MAX_SHAPES) fullAt = visited.lastSeq
    return { ...visited, isDone: fullAt !== undefined }
  })
  const endedAt = fullAt ?? stoppedAt
  const bounds = { afterMs: fromMs, beforeMs: toEndMs(buckets) }
  const sinceMs =
    endedAt === undefined ? undefined : await findCompleteSince(sql, projectId, bounds, endedAt)
  return toAlikeTitles(sql, projectId, {
    buckets,
    groups,
    sinceMs: sinceMs !== undefined && sinceMs > fromMs ? sinceMs : undefined,
  })
}

/** The matches of a batch with one shape, in one channel and one bucket. */
interface Part {
  shape: string
  channelId: string
  bucket: number
  n: number
  example: string
  firstAt: Date
  lastAt: Date
}

interface Batch {
  resolved: ResolvedFilters
  buckets: TimeBuckets
  batch: ScanBatch
}

async function countBatch(
  sql: Queryable,
  projectId: string,
  { resolved, buckets, batch }: Batch,
): Promise<Omit<BatchResult, 'isDone'> & { found: Part[] }> {
  const columns = sql`
    e.seq, e.title, e.channel_id, e.occurred_at, ${toBucket(sql, buckets)} as bucket
  `
  const rows = await sql<(VisitedCandidates & (Part | { shape: null }))[]>`
    with candidates as materialized (
      ${toCandidates(sql, projectId, resolved, batch)}
    ), met as materialized (
      select shape_of_title(e.title) as shape, e.*
      from candidates
        cross join lateral (${toMatch(sql, projectId, resolved, columns)}) e
    ), parts as (
      select
        m.shape, m.channel_id, m.bucket, count(*)::float8 as n,
        (array_agg(m.title order by m.seq desc))[1] as example,
        min(m.occurred_at) as first_at, max(m.occurred_at) as last_at, max(m.seq) as seq
      from met m
      group by m.shape, m.channel_id, m.bucket
    ), seen as (
      select count(*)::int as candidates, min(seq) as last_seq from candidates
    )
    select
      seen.candidates, seen.last_seq, p.shape, p.channel_id as "channelId", p.bucket, p.n, p.example,
      p.first_at as "firstAt", p.last_at as "lastAt"
    from seen
      left join parts p on true
    order by p.seq desc
  `
  return { ...readVisited(rows), found: rows.filter(row => row.shape !== null) }
}

function addPart(groups: Map<string, Group>, part: Part, { count }: TimeBuckets): void {
  const { shape, channelId, bucket, n, example, firstAt, lastAt } = part
  const group = groups.get(shape) ?? {
    ...{ example, channels: new Map<string, number>(), total: 0, firstAt, lastAt },
    counts: new Array<number>(count).fill(0),
  }
  groups.set(shape, group)
  group.channels.set(channelId, (group.channels.get(channelId) ?? 0) + n)
  group.total += n
  // Timestamps can be up to an hour later than now.
  const at = Math.min(bucket, count - 1)
  group.counts[at] = (group.counts[at] ?? 0) + n
  if (firstAt < group.firstAt) group.firstAt = firstAt
  if (lastAt > group.lastAt) group.lastAt = lastAt
}

interface Grouped {
  buckets: TimeBuckets
  groups: ReadonlyMap<string, Group>
  /** Undefined when the whole range was counted. */
  sinceMs: number | undefined
}

async function toAlikeTitles(
  sql: Queryable,
  projectId: string,
  { buckets, groups, sinceMs }: Grouped,
): Promise<AlikeTitles> {
  const shown = [...groups].toSorted(byCount).slice(0, MAX_GROUPS)
  const channels = new Map(shown.map(([shape, one]) => [shape, listChannels(one)]))
  const names = await nameValues(sql, projectId, {
    groupBy: 'channel',
    values: [...new Set([...channels.values()].flat())],
  })
  return {
    from: new Date(buckets.fromMs).toISOString(),
    to: new Date(toEndMs(buckets)).toISOString(),
    stepMs: buckets.stepMs,
    total: [...groups.values()].reduce((sum, { total }) => sum + total, 0),
    completeSince: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    groups: shown.map(([shape, group]) => ({
      shape,
      example: group.example,
      channels: (channels.get(shape) ?? []).map(uuid => ({
        id: toId('chn', uuid),
        name: names.get(uuid) ?? '',
      })),
      channelCount: group.channels.size,
      total: group.total,
      firstAt: group.firstAt.toISOString(),
      lastAt: group.lastAt.toISOString(),
      counts: group.counts,
    })),
    hasMore: groups.size > shown.length,
  }
}

/** The uuids of the channels with the most events of a group. */
function listChannels({ channels }: Group): string[] {
  return [...channels]
    .toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
    .slice(0, MAX_CHANNELS)
    .map(([uuid]) => uuid)
}

/** The largest groups first, of equal ones the one with the newest event. */
function byCount([a, one]: [string, Group], [b, other]: [string, Group]): number {
  return (
    other.total - one.total || other.lastAt.getTime() - one.lastAt.getTime() || (a < b ? -1 : 1)
  )
}

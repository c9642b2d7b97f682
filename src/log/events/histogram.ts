import { QUERY_CANCELED, sqlState, type Fragment, type Queryable } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import { listChannelNames } from '../channels/channels.ts'
import { countMatches, findCompleteSince, type Bounds } from './count-scan.ts'
import { toChannelConditions } from './event-conditions.ts'
import { resolveFilters, type ResolvedFilters } from './resolved-filters.ts'
import { HOUR_MS, toEndMs, toTimeBuckets, type TimeBuckets } from './time-buckets.ts'
import { hasOnly, type SearchFilters } from './search-filters.ts'
import type { Histogram } from './search-schema.ts'
import type { ScanLimits } from './log-scan.ts'

const DEFAULT_HOURS = 60
const TOP_CHANNELS = 8
/** A range with more events is counted by whole hours. */
const MAX_COUNTED_EVENTS = 200_000
const TIME_LIMIT_MS = 150

/** The number of events of a channel (uuid) in one bucket. */
interface Count {
  channelId: string
  bucket: number
  n: number
}

export interface HistogramRange {
  fromMs?: number | undefined
  toMs?: number | undefined
  nowMs: number
}

/**
 * Counts matching events by time and channel, in up to 60 equal buckets. The default range is that
 * of the filters, or the last 60 hours. When only channels are filtered, counts are exact. Then
 * more than 200,000 events are counted by whole hours. With other filters, or when that takes too
 * long, it counts from the newest event back for about 150 ms, and `completeSince` tells how far it
 * came.
 */
export async function buildHistogram(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  range: HistogramRange,
  limits: ScanLimits = {},
): Promise<Histogram> {
  // No event has a later timestamp, and the ends of buckets must be valid dates.
  const lastMs = range.nowMs + HOUR_MS
  const toMs = Math.min(range.toMs ?? filters.before ?? range.nowMs, lastMs)
  const hourMs = Math.floor((toMs - 1) / HOUR_MS) * HOUR_MS
  const defaultMs = hourMs - (DEFAULT_HOURS - 1) * HOUR_MS
  const fromMs = Math.min(range.fromMs ?? filters.after ?? defaultMs, lastMs)
  const buckets = toTimeBuckets(fromMs, Math.max(toMs, fromMs + 1))
  const narrow = {
    ...filters,
    after: Math.max(filters.after ?? -Infinity, buckets.fromMs),
    before: Math.min(filters.before ?? Infinity, toEndMs(buckets)),
  }
  const resolved = await resolveFilters(sql, projectId, narrow)
  if (!resolved) return toHistogram(sql, projectId, buckets, [])
  const bounds = { ...resolved, afterMs: narrow.after, beforeMs: narrow.before }
  if (!isByChannel(filters)) return countSome(sql, projectId, buckets, bounds, limits)
  try {
    const hourly = toTimeBuckets(fromMs, toMs, { minStepMs: HOUR_MS })
    return await countAll(sql, projectId, { buckets, hourly }, bounds)
  } catch (error) {
    // The statement timeout has ended a count over very many hours, channels or events.
    if (sqlState(error) !== QUERY_CANCELED) throw error
    return countSome(sql, projectId, buckets, bounds, limits)
  }
}

/**
 * Counts all events of channels in the range. More than 200,000 events are counted by whole hours.
 */
async function countAll(
  sql: Queryable,
  projectId: string,
  { buckets, hourly }: { buckets: TimeBuckets; hourly: TimeBuckets },
  bounds: CountFilter,
): Promise<Histogram> {
  const { afterMs, beforeMs } = bounds
  const isWhole = [buckets.stepMs, afterMs, beforeMs].every(ms => ms % HOUR_MS === 0)
  const counts = await countByHour(sql, projectId, isWhole ? buckets : hourly, bounds)
  if (isWhole) return toHistogram(sql, projectId, buckets, counts)
  const isMuch = counts.reduce((sum, { n }) => sum + n, 0) > MAX_COUNTED_EVENTS
  if (isMuch) return toHistogram(sql, projectId, hourly, counts)
  return toHistogram(sql, projectId, buckets, await countEvents(sql, projectId, buckets, bounds))
}

/** Returns true if filters choose channels and a time, and nothing else. */
export function isByChannel(filters: SearchFilters): boolean {
  return hasOnly(filters, ['channels'])
}

/**
 * Counts matches from the newest back. When a limit is reached, counts are complete from `sinceMs`
 * on.
 */
async function countSome(
  sql: Queryable,
  projectId: string,
  buckets: TimeBuckets,
  resolved: ResolvedFilters & Bounds,
  limits: ScanLimits,
): Promise<Histogram> {
  const all: Count[] = []
  const counting = {
    columns: sql`e.channel_id, ${toBucket(sql, buckets)} as bucket`,
    counts: sql`
      select met.channel_id as "channelId", met.bucket, count(*)::float8 as n from met group by 1, 2
    `,
    limits: { timeLimitMs: TIME_LIMIT_MS, ...limits },
  }
  const stopped = await countMatches<Count>(sql, projectId, resolved, counting, counts => {
    all.push(...counts)
    return false
  })
  const sinceMs =
    stopped === undefined ? undefined : await findCompleteSince(sql, projectId, resolved, stopped)
  return toHistogram(sql, projectId, buckets, all, sinceMs)
}

async function toHistogram(
  sql: Queryable,
  projectId: string,
  buckets: TimeBuckets,
  counts: Count[],
  sinceMs?: number,
): Promise<Histogram> {
  const totals = new Map<string, number>()
  for (const { channelId, n } of counts) totals.set(channelId, (totals.get(channelId) ?? 0) + n)
  const top = [...totals].toSorted(([, a], [, b]) => b - a).slice(0, TOP_CHANNELS)
  const series = new Map(top.map(([channelId]) => [channelId, toZeros(buckets)]))
  const others = toZeros(buckets)
  for (const { channelId, bucket, n } of counts) {
    const row = series.get(channelId) ?? others
    row[bucket] = (row[bucket] ?? 0) + n
  }
  const names = await listChannelNames(sql, projectId, [...series.keys()])
  return {
    from: new Date(buckets.fromMs).toISOString(),
    to: new Date(toEndMs(buckets)).toISOString(),
    stepMs: buckets.stepMs,
    total: counts.reduce((sum, { n }) => sum + n, 0),
    channels: [...series].map(([uuid, row]) => ({
      id: toId('chn', uuid),
      name: names.get(uuid) ?? '',
      counts: row,
    })),
    others,
    isPartial: sinceMs !== undefined,
    completeSince: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
  }
}

function toZeros({ count }: TimeBuckets): number[] {
  return new Array<number>(count).fill(0)
}

type CountFilter = Pick<ResolvedFilters, 'channelIds' | 'withoutChannelIds'> & Bounds

/**
 * Sums the counts per hour of event_counts. Buckets must be whole hours; bounds are widened to
 * hours.
 */
export async function countByHour(
  sql: Queryable,
  projectId: string,
  buckets: TimeBuckets,
  counted: CountFilter,
): Promise<Count[]> {
  const afterMs = Math.floor(counted.afterMs / HOUR_MS) * HOUR_MS
  return await sql<Count[]>`
    select e.channel_id as "channelId", ${toBucket(sql, buckets, sql`e.hour`)} as bucket, sum(e.n)::float8 as n
    from event_counts e
    where e.project_id = ${projectId}
      and e.hour >= ${new Date(afterMs)} and e.hour < ${new Date(counted.beforeMs)}
      ${toChannelConditions(sql, counted)}
    group by 1, 2
  `
}

/** Counts the events themselves, for buckets shorter than an hour. */
export async function countEvents(
  sql: Queryable,
  projectId: string,
  buckets: TimeBuckets,
  counted: CountFilter,
): Promise<Count[]> {
  return await sql<Count[]>`
    select e.channel_id as "channelId", ${toBucket(sql, buckets)} as bucket, count(*)::float8 as n
    from events e
    where e.project_id = ${projectId} and e.deleted_at is null
      and e.occurred_at >= ${new Date(counted.afterMs)} and e.occurred_at < ${new Date(counted.beforeMs)}
      ${toChannelConditions(sql, counted)}
    group by 1, 2
  `
}

/** The number of the bucket for a time; by default that of an event `e`. */
function toBucket(
  sql: Queryable,
  { fromMs, stepMs }: TimeBuckets,
  time = sql`e.occurred_at`,
): Fragment {
  return sql`floor((date_part('epoch', ${time}) * 1000 - ${fromMs}::float8) / ${stepMs}::float8)::int`
}

import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { resolve, toConditions, type Criteria } from './criteria.ts'
import { toStretch } from './ranges.ts'
import { HOUR_MS, toEndMs, toScale, type Scale } from './scale.ts'
import type { Filters } from './search.ts'
import type { Histogram } from './search-schema.ts'
import { toCandidates, walk, type Patience, type Visited, type Window } from './walk.ts'

const DEFAULT_HOURS = 60
const TOP_CHANNELS = 8
/** More events than this are counted by the hour only. */
const MAX_MOMENTS = 200_000
const SPEND_MS = 150

/** How many events of a channel (uuid) happened in a bucket. */
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
 * Counts matching events by time and channel, in up to 60 equal buckets. The default range is that of the filters, or the
 * last 60 hours. With filters by channel only, counts are exact; beyond 200,000 events, buckets and filters are whole
 * hours. Other filters count back for about 150 ms, and `completeSince` says how far that was.
 */
export async function histogramOf(
  sql: Queryable,
  projectId: string,
  filters: Filters,
  range: HistogramRange,
  patience: Patience = {},
): Promise<Histogram> {
  // No event happens later, and the ends of buckets stay valid dates.
  const lastMs = range.nowMs + HOUR_MS
  const toMs = Math.min(range.toMs ?? filters.before ?? range.nowMs, lastMs)
  const hourMs = Math.floor((toMs - 1) / HOUR_MS) * HOUR_MS
  const defaultMs = hourMs - (DEFAULT_HOURS - 1) * HOUR_MS
  const fromMs = Math.min(range.fromMs ?? filters.after ?? defaultMs, lastMs)
  const scale = toScale(fromMs, Math.max(toMs, fromMs + 1))
  const narrow = {
    ...filters,
    after: Math.max(filters.after ?? -Infinity, scale.fromMs),
    before: Math.min(filters.before ?? Infinity, toEndMs(scale)),
  }
  const criteria = await resolve(sql, projectId, narrow)
  if (!criteria) return toHistogram(sql, projectId, scale, [])
  const bounds = { ...criteria, afterMs: narrow.after, beforeMs: narrow.before }
  if (!isByChannel(filters)) {
    const { counts, sinceMs } = await countMatches(sql, projectId, scale, bounds, patience)
    return toHistogram(sql, projectId, scale, counts, sinceMs)
  }
  const isWhole = [scale.stepMs, narrow.after, narrow.before].every(ms => ms % HOUR_MS === 0)
  const hourly = toScale(fromMs, toMs, HOUR_MS)
  const counts = await countHours(sql, projectId, isWhole ? scale : hourly, bounds)
  if (isWhole) return toHistogram(sql, projectId, scale, counts)
  const isMuch = counts.reduce((sum, { n }) => sum + n, 0) > MAX_MOMENTS
  if (isMuch) return toHistogram(sql, projectId, hourly, counts)
  return toHistogram(sql, projectId, scale, await countMoments(sql, projectId, scale, bounds))
}

function isByChannel({ users, sources, tags, metadata, has, words, phrases }: Filters): boolean {
  return [users, sources, tags, metadata, has, words, phrases].every(
    ({ is, not }) => is.length === 0 && not.length === 0,
  )
}

/** Counts matches, newest first, until patience ends; `sinceMs` is the moment that it reached then. */
async function countMatches(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  criteria: Criteria & Bounds,
  patience: Patience,
): Promise<{ counts: Count[]; sinceMs: number | undefined }> {
  const counts: Count[] = []
  const options = {
    direction: 'older',
    from: undefined,
    wanted: Infinity,
    spendMs: SPEND_MS,
    ...patience,
  } as const
  const stopped = await walk(criteria, options, async window => {
    const { found, ...visited } = await countWindow(sql, projectId, scale, criteria, window)
    counts.push(...found)
    return { ...visited, isDone: false }
  })
  const sinceMs =
    stopped === undefined ? undefined : await findUnseen(sql, projectId, criteria, stopped)
  return { counts, sinceMs }
}

async function countWindow(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  criteria: Criteria,
  window: Window,
): Promise<Omit<Visited, 'isDone'> & { found: Count[] }> {
  const rows = await sql<
    ({ candidates: number; reached: string | null } & (Count | { channelId: null }))[]
  >`
    with candidates as materialized (
      ${toCandidates(sql, projectId, criteria, window)}
    ), met as (
      select e.channel_id, e.bucket, count(*)::float8 as n
      from candidates
        cross join lateral (
          select e.channel_id, ${toBucket(sql, scale)} as bucket
          from events e
          where e.project_id = ${projectId} and e.seq = candidates.seq
            and ${toConditions(sql, criteria)}
          -- Keeps this a look-up by the primary key for each candidate.
          offset 0
        ) e
      group by 1, 2
    ), seen as (
      select count(*)::int as candidates, min(seq) as reached from candidates
    )
    select seen.candidates, seen.reached, met.channel_id as "channelId", met.bucket, met.n
    from seen
      left join met on true
  `
  const [{ candidates, reached } = { candidates: 0, reached: null }] = rows
  return {
    candidates,
    reached: reached === null ? undefined : BigInt(reached),
    found: rows.filter(row => row.channelId !== null),
  }
}

/** A moment after which no uncounted event happened: none with a smaller seq that could match. */
async function findUnseen(
  sql: Queryable,
  projectId: string,
  { afterMs, beforeMs }: Bounds,
  seq: bigint,
): Promise<number> {
  const { first } = toStretch(seq)
  const [row] = await sql<[{ at: Date | null }]>`
    select greatest(
      (
        select max(e.occurred_at)
        from (
          select e.occurred_at
          from events e
          where e.project_id = ${projectId} and e.seq >= ${String(first)} and e.seq < ${String(seq)}
          -- Keeps this from a search for the maximum along the index of time.
          offset 0
        ) e
        where e.occurred_at < ${new Date(beforeMs)}
      ),
      (
        select max(s.last_at)
        from event_stretches s
        where s.project_id = ${projectId} and s.stretch < ${String(toStretch(seq).stretch)}
          and s.last_at > ${new Date(afterMs)} and s.first_at < ${new Date(beforeMs)}
      )
    ) as at
  `
  const at = row.at ? row.at.getTime() : afterMs
  return Math.min(Math.max(at, afterMs), beforeMs)
}

async function toHistogram(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  counts: Count[],
  sinceMs?: number,
): Promise<Histogram> {
  const totals = new Map<string, number>()
  for (const { channelId, n } of counts) totals.set(channelId, (totals.get(channelId) ?? 0) + n)
  const top = [...totals].toSorted(([, a], [, b]) => b - a).slice(0, TOP_CHANNELS)
  const series = new Map(top.map(([channelId]) => [channelId, toZeros(scale)]))
  const others = toZeros(scale)
  for (const { channelId, bucket, n } of counts) {
    const row = series.get(channelId) ?? others
    row[bucket] = (row[bucket] ?? 0) + n
  }
  const names = await listNames(sql, projectId, [...series.keys()])
  return {
    from: new Date(scale.fromMs).toISOString(),
    to: new Date(toEndMs(scale)).toISOString(),
    stepMs: scale.stepMs,
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

function toZeros({ buckets }: Scale): number[] {
  return new Array<number>(buckets).fill(0)
}

async function listNames(
  sql: Queryable,
  projectId: string,
  channelIds: string[],
): Promise<Map<string, string>> {
  if (channelIds.length === 0) return new Map()
  const rows = await sql<{ id: string; name: string }[]>`
    select id, name
    from channels
    where project_id = ${projectId} and id = any(${toArray(channelIds)}::uuid[])
  `
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** From `afterMs` on, and before `beforeMs`. */
interface Bounds {
  afterMs: number
  beforeMs: number
}

type Counted = Pick<Criteria, 'channelIds' | 'withoutChannelIds'> & Bounds

/** Counts from the counts per hour. Buckets are whole hours, and bounds are rounded to hours. */
export async function countHours(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  counted: Counted,
): Promise<Count[]> {
  const afterMs = Math.floor(counted.afterMs / HOUR_MS) * HOUR_MS
  return await sql<Count[]>`
    select e.channel_id as "channelId", ${toBucket(sql, scale, sql`e.hour`)} as bucket, sum(e.n)::float8 as n
    from event_counts e
    where e.project_id = ${projectId}
      and e.hour >= ${new Date(afterMs)} and e.hour < ${new Date(counted.beforeMs)}
      ${toChannels(sql, counted)}
    group by 1, 2
  `
}

/** Counts from the events themselves, for buckets shorter than an hour. */
async function countMoments(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  counted: Counted,
): Promise<Count[]> {
  return await sql<Count[]>`
    select e.channel_id as "channelId", ${toBucket(sql, scale)} as bucket, count(*)::float8 as n
    from events e
    where e.project_id = ${projectId} and e.deleted_at is null
      and e.occurred_at >= ${new Date(counted.afterMs)} and e.occurred_at < ${new Date(counted.beforeMs)}
      ${toChannels(sql, counted)}
    group by 1, 2
  `
}

/** The bucket of a moment, by default of an event `e`. */
function toBucket(
  sql: Queryable,
  { fromMs, stepMs }: Scale,
  moment = sql`e.occurred_at`,
): Fragment {
  return sql`floor((date_part('epoch', ${moment}) * 1000 - ${fromMs}::float8) / ${stepMs}::float8)::int`
}

function toChannels(sql: Queryable, { channelIds, withoutChannelIds }: Counted): Fragment {
  return sql`
    ${channelIds ? sql`and e.channel_id = any(${toArray(channelIds)}::uuid[])` : sql``}
    ${
      withoutChannelIds.length > 0
        ? sql`and e.channel_id <> all(${toArray(withoutChannelIds)}::uuid[])`
        : sql``
    }
  `
}

import type { Queryable } from '../../database/sql.ts'
import { toChannelConditions } from '../events/event-conditions.ts'
import { countEvents } from '../events/histogram.ts'
import type { ResolvedFilters } from '../events/resolved-filters.ts'
import { HOUR_MS } from '../events/time-buckets.ts'

/** A period in whole hours up to the present one, and the same part of the period before. */
export interface Period {
  /** The start of the period. The period before ends there. */
  fromMs: number
  /** The end of the present hour. */
  toMs: number
  /** The start of the period before. */
  previousFromMs: number
  /** As far into the period before as now is into the period. */
  previousToMs: number
}

/** Returns the period of the last `hours` hours, the present one included. */
export function toPeriod(hours: number, nowMs: number): Period {
  const lengthMs = hours * HOUR_MS
  const toMs = (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS
  const fromMs = toMs - lengthMs
  return { fromMs, toMs, previousFromMs: fromMs - lengthMs, previousToMs: nowMs - lengthMs }
}

/**
 * The last hour of the period before is counted by its events, because only a part of it belongs to
 * that period. If it has more events, it counts by that part.
 */
const MAX_COUNTED_EVENTS = 100_000

/** The matches of a period, and those of the same part of the period before. */
export interface Counts {
  total: number
  previous: number
}

type ChannelFilter = Pick<ResolvedFilters, 'channelIds' | 'withoutChannelIds'>

/** Counts the events of each channel (uuid), by the exact counts of each hour. */
export async function countByChannel(
  sql: Queryable,
  projectId: string,
  filter: ChannelFilter,
  { fromMs, toMs, previousFromMs, previousToMs }: Period,
): Promise<Map<string, Counts>> {
  const edgeMs = Math.floor(previousToMs / HOUR_MS) * HOUR_MS
  const rows = await sql<{ id: string; total: number; previous: number; at_edge: number }[]>`
    select
      e.channel_id as id,
      coalesce(sum(e.n) filter (where e.hour >= ${new Date(fromMs)}), 0)::float8 as total,
      coalesce(sum(e.n) filter (where e.hour < ${new Date(edgeMs)}), 0)::float8 as previous,
      coalesce(sum(e.n) filter (where e.hour = ${new Date(edgeMs)}), 0)::float8 as at_edge
    from event_counts e
    where e.project_id = ${projectId}
      and e.hour >= ${new Date(previousFromMs)} and e.hour < ${new Date(toMs)}
      ${toChannelConditions(sql, filter)}
    group by 1
  `
  const partMs = previousToMs - edgeMs
  const edgeTotal = rows.reduce((sum, { at_edge }) => sum + at_edge, 0)
  const isCounted = edgeTotal > 0 && edgeTotal <= MAX_COUNTED_EVENTS && partMs > 0
  const buckets = { fromMs: edgeMs, stepMs: partMs, count: 1 }
  const bounds = { ...filter, afterMs: edgeMs, beforeMs: previousToMs }
  const parts = isCounted ? await countEvents(sql, projectId, buckets, bounds) : []
  const counted = new Map(parts.map(({ channelId, n }) => [channelId, n]))
  return new Map(
    rows.map(({ id, total, previous, at_edge: atEdge }) => {
      const part =
        isCounted || partMs === 0 ? (counted.get(id) ?? 0) : Math.round((atEdge * partMs) / HOUR_MS)
      return [id, { total, previous: previous + part }]
    }),
  )
}

/**
 * Returns true if no event of these channels that was accepted since `ms` has expired, or is in the
 * archive only.
 */
export async function areKeptSince(
  sql: Queryable,
  projectId: string,
  filter: ChannelFilter,
  ms: number,
): Promise<boolean> {
  const [row] = await sql<[{ since: Date | null }]>`
    select greatest(
      archived_before(${projectId}),
      now() - make_interval(days => min(coalesce(c.keep_days, p.keep_days)))
    ) as since
    from projects p
      join channels_of(${projectId}) c on true
    where p.id = ${projectId} ${toChannelConditions(sql, filter, sql`c.id`)}
  `
  return row.since === null || row.since.getTime() <= ms
}

import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import type { ResolvedFilters } from '../events/resolved-filters.ts'
import { HOUR_MS } from '../events/time-buckets.ts'
import type { Period } from './period.ts'

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
      ${toChannels(sql, sql`e.channel_id`, filter)}
    group by 1
  `
  const partMs = previousToMs - edgeMs
  const edgeTotal = rows.reduce((sum, { at_edge }) => sum + at_edge, 0)
  const counted =
    edgeTotal > 0 && edgeTotal <= MAX_COUNTED_EVENTS && partMs > 0
      ? await countEvents(sql, projectId, filter, [edgeMs, previousToMs])
      : undefined
  return new Map(
    rows.map(({ id, total, previous, at_edge: atEdge }) => {
      const part =
        counted || partMs === 0 ? (counted?.get(id) ?? 0) : Math.round((atEdge * partMs) / HOUR_MS)
      return [id, { total, previous: previous + part }]
    }),
  )
}

/** Counts the events of each channel between two times. */
async function countEvents(
  sql: Queryable,
  projectId: string,
  filter: ChannelFilter,
  [fromMs, toMs]: readonly [number, number],
): Promise<Map<string, number>> {
  const rows = await sql<{ id: string; n: number }[]>`
    select e.channel_id as id, count(*)::float8 as n
    from events e
    where e.project_id = ${projectId} and e.deleted_at is null
      and e.occurred_at >= ${new Date(fromMs)} and e.occurred_at < ${new Date(toMs)}
      ${toChannels(sql, sql`e.channel_id`, filter)}
    group by 1
  `
  return new Map(rows.map(({ id, n }) => [id, n]))
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
    where p.id = ${projectId} ${toChannels(sql, sql`c.id`, filter)}
  `
  return row.since === null || row.since.getTime() <= ms
}

function toChannels(
  sql: Queryable,
  column: Fragment,
  { channelIds, withoutChannelIds }: ChannelFilter,
): Fragment {
  return sql`
    ${channelIds ? sql`and ${column} = any(${toArray(channelIds)}::uuid[])` : sql``}
    ${
      withoutChannelIds.length > 0
        ? sql`and ${column} <> all(${toArray(withoutChannelIds)}::uuid[])`
        : sql``
    }
  `
}

import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import type { Criteria } from './criteria.ts'
import { HOUR_MS, type Scale } from './scale.ts'

/** How many events of a channel (uuid) happened in a bucket. */
export interface Count {
  channelId: string
  bucket: number
  n: number
}

interface Row {
  channel_id: string
  bucket: number
  n: number
}

/** Moments in milliseconds: at the first or later, and before the second. */
export interface Bounds {
  afterMs: number
  beforeMs: number
}

type Channels = Pick<Criteria, 'channelIds' | 'withoutChannelIds'>

/** From the counts per hour: buckets are whole hours, and the bounds are made so. */
export async function countHours(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  { afterMs, beforeMs, ...channels }: Channels & Bounds,
): Promise<Count[]> {
  const rows = await sql<Row[]>`
    select
      c.channel_id,
      floor((date_part('epoch', c.hour) - ${scale.fromMs / 1000}::float8) / ${scale.stepMs / 1000}::float8)::int
        as bucket,
      sum(c.n)::float8 as n
    from event_counts c
    where c.project_id = ${projectId}
      and c.hour >= ${new Date(Math.floor(afterMs / HOUR_MS) * HOUR_MS)}
      and c.hour < ${new Date(beforeMs)}
      ${toChannels(sql, channels)}
    group by 1, 2
  `
  return rows.map(toCount)
}

/** From the events themselves, by when they happened: for what is less than an hour and not too much. */
export async function countMoments(
  sql: Queryable,
  projectId: string,
  scale: Scale,
  { afterMs, beforeMs, ...channels }: Channels & Bounds,
): Promise<Count[]> {
  const rows = await sql<Row[]>`
    select e.channel_id, ${toBucket(sql, scale)} as bucket, count(*)::float8 as n
    from events e
    where e.project_id = ${projectId} and e.deleted_at is null
      and e.occurred_at >= ${new Date(afterMs)} and e.occurred_at < ${new Date(beforeMs)}
      ${toChannels(sql, channels, 'e')}
    group by 1, 2
  `
  return rows.map(toCount)
}

/** The bucket of an event `e`. */
export function toBucket(sql: Queryable, { fromMs, stepMs }: Scale): Fragment {
  return sql`
    floor((date_part('epoch', e.occurred_at) * 1000 - ${fromMs}::float8) / ${stepMs}::float8)::int
  `
}

export function toCount({ channel_id, bucket, n }: Row): Count {
  return { channelId: channel_id, bucket, n }
}

function toChannels(
  sql: Queryable,
  { channelIds, withoutChannelIds }: Channels,
  table = 'c',
): Fragment {
  const id = sql`${sql(table)}.channel_id`
  return sql`
    ${channelIds ? sql`and ${id} = any(${toArray(channelIds)}::uuid[])` : sql``}
    ${
      withoutChannelIds.length > 0
        ? sql`and ${id} <> all(${toArray(withoutChannelIds)}::uuid[])`
        : sql``
    }
  `
}

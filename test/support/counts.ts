import { expect } from 'bun:test'
import { toId } from '../../src/base/ids.ts'
import type { Queryable } from '../../src/database/sql.ts'
import { countByHour } from '../../src/log/events/histogram.ts'
import { HOUR_MS, toEndMs } from '../../src/log/events/time-buckets.ts'
import { findWrongCounts } from './wrong-counts.ts'

/** Expects event_counts to equal the counts of the project's events. */
export async function expectExactCounts(sql: Queryable, projectId: string): Promise<void> {
  expect(await findWrongCounts(sql, projectId)).toEqual([])
}

interface HourlyCounts {
  /** The beginning of the first hour. */
  from: string
  channels: { channelId: string; total: number; hourly: number[] }[]
}

/**
 * Counts events per hour and channel over the UTC hours of a range in milliseconds, a week at most.
 * Counts the channels with these ids (uuid), or all.
 */
export async function listHourlyCounts(
  sql: Queryable,
  projectId: string,
  { fromMs, toMs, channelIds }: { fromMs: number; toMs: number; channelIds?: string[] },
): Promise<HourlyCounts> {
  const first = Math.floor(fromMs / HOUR_MS) * HOUR_MS
  const hours = Math.min(168, Math.max(1, Math.ceil((toMs - first) / HOUR_MS)))
  const scale = { fromMs: first, stepMs: HOUR_MS, count: hours }
  const counts = await countByHour(sql, projectId, scale, {
    channelIds,
    withoutChannelIds: [],
    afterMs: first,
    beforeMs: toEndMs(scale),
  })
  const channels = Map.groupBy(counts, ({ channelId }) => channelId)
  return {
    from: new Date(first).toISOString(),
    channels: [...channels].map(([uuid, found]) => {
      const hourly = new Array<number>(hours).fill(0)
      for (const { bucket, n } of found) hourly[bucket] = n
      return {
        channelId: toId('chn', uuid),
        total: hourly.reduce((sum, n) => sum + n, 0),
        hourly,
      }
    }),
  }
}

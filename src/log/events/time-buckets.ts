/** Consecutive time spans of equal length. The first begins at `fromMs`. */
export interface TimeBuckets {
  fromMs: number
  stepMs: number
  count: number
}

export const HOUR_MS = 3_600_000
const MAX_BUCKETS = 60
// Each of these divides an hour.
const STEPS_MS = [
  ...[1, 2, 5, 10, 15, 20, 30].map(seconds => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 20, 30].map(minutes => minutes * 60_000),
]

/**
 * Returns up to `maxCount` buckets that cover a range. They are as short as possible, but not
 * shorter than `minStepMs`. Long buckets are whole hours.
 */
export function toTimeBuckets(
  fromMs: number,
  toMs: number,
  { minStepMs = 0, maxCount = MAX_BUCKETS } = {},
): TimeBuckets {
  for (const stepMs of STEPS_MS) {
    if (stepMs < minStepMs) continue
    const buckets = cover(fromMs, toMs, stepMs, stepMs)
    if (buckets.count <= maxCount) return buckets
  }
  const hours = Math.max(1, Math.ceil((toMs - fromMs) / HOUR_MS / maxCount))
  const buckets = cover(fromMs, toMs, hours * HOUR_MS, HOUR_MS)
  // The first bucket can begin before the range, so one more bucket can be necessary.
  return buckets.count <= maxCount ? buckets : cover(fromMs, toMs, (hours + 1) * HOUR_MS, HOUR_MS)
}

/** Returns the end of the last bucket. */
export function toEndMs({ fromMs, stepMs, count }: TimeBuckets): number {
  return fromMs + stepMs * count
}

function cover(fromMs: number, toMs: number, stepMs: number, alignMs: number): TimeBuckets {
  const first = Math.floor(fromMs / alignMs) * alignMs
  return { fromMs: first, stepMs, count: Math.max(1, Math.ceil((toMs - first) / stepMs)) }
}

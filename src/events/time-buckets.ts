/** Consecutive time spans of equal length. The first begins at `fromMs`. */
export interface TimeBuckets {
  fromMs: number
  stepMs: number
  buckets: number
}

export const HOUR_MS = 3_600_000
const MAX_BUCKETS = 60
// Each divides the hour.
const STEPS_MS = [
  ...[1, 2, 5, 10, 15, 20, 30].map(seconds => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 20, 30].map(minutes => minutes * 60_000),
]

/**
 * Returns up to 60 buckets that cover a range. They are as short as possible, but not shorter than
 * `minStepMs`. Long buckets are whole hours.
 */
export function toTimeBuckets(fromMs: number, toMs: number, minStepMs = 0): TimeBuckets {
  for (const stepMs of STEPS_MS) {
    if (stepMs < minStepMs) continue
    const scale = cover(fromMs, toMs, stepMs, stepMs)
    if (scale.buckets <= MAX_BUCKETS) return scale
  }
  const hours = Math.max(1, Math.ceil((toMs - fromMs) / HOUR_MS / MAX_BUCKETS))
  const scale = cover(fromMs, toMs, hours * HOUR_MS, HOUR_MS)
  // The first bucket begins before the range, so one bucket more may be needed.
  return scale.buckets <= MAX_BUCKETS ? scale : cover(fromMs, toMs, (hours + 1) * HOUR_MS, HOUR_MS)
}

/** Returns the end of the last bucket. */
export function toEndMs({ fromMs, stepMs, buckets }: TimeBuckets): number {
  return fromMs + stepMs * buckets
}

function cover(fromMs: number, toMs: number, stepMs: number, alignMs: number): TimeBuckets {
  const first = Math.floor(fromMs / alignMs) * alignMs
  return { fromMs: first, stepMs, buckets: Math.max(1, Math.ceil((toMs - first) / stepMs)) }
}

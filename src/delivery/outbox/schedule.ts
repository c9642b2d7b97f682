const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/**
 * The delay before each attempt of a webhook, in ms, ± 20 %: the schedule of Standard Webhooks,
 * three days in all.
 */
export const WEBHOOK_SCHEDULE_MS: readonly number[] = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]

/** The delay before each attempt of a push, in ms, ± 20 %: a day in all. */
export const PUSH_SCHEDULE_MS: readonly number[] = [
  0,
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
]

/**
 * Returns the delay before the next attempt, in ms: that of the schedule ± 20 %, or what the target
 * asked for if that is longer, up to a day. `attempt` is the number of the last one, from 1.
 * `random` is from 0 to 1. Undefined after the last attempt of the schedule.
 */
export function findDelay(
  schedule: readonly number[],
  attempt: number,
  { random, askedMs = 0 }: { random: number; askedMs: number | undefined },
): number | undefined {
  const scheduledMs = schedule[attempt]
  if (scheduledMs === undefined) return undefined
  const atLeastMs = Math.min(24 * HOUR, Math.max(0, askedMs || 0))
  return Math.round(Math.max(scheduledMs * (0.8 + 0.4 * random), atLeastMs))
}

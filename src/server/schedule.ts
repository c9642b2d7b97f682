import { toWallClock } from '../base/zone-rules.ts'

const RETRY_MS = 3_600_000
const DAY_MS = 24 * RETRY_MS

/** A time of day in the time zone of the process. */
export interface Daily {
  hour: number
  minute: number
}

/** The last time that scheduled work was done. */
export interface LastTime {
  attempted_at: Date
  succeeded_at: Date | null
}

/**
 * How far in the future a recorded time may be, because another server's clock is fast. A later one
 * was recorded while a clock was wrong.
 */
const MAX_SKEW_MS = RETRY_MS

/** Returns a recorded time. Null if it lies in the future, so that nothing is known from it. */
export function toKnownTime(at: Date | null, now: Date): Date | null {
  return at !== null && at.getTime() - now.getTime() <= MAX_SKEW_MS ? at : null
}

/**
 * Returns whether the last time of a daily schedule was missed. The first time is due at once, and
 * a failed one an hour after it began.
 */
export function isDue(last: LastTime | undefined, { hour, minute }: Daily, now: Date): boolean {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const offsetAt = (at: Date) => toWallClock(at, timeZone).getTime() - at.getTime()
  const toTime = (wallMs: number) => new Date(wallMs - offsetAt(new Date(wallMs - offsetAt(now))))
  const today = toWallClock(now, timeZone).setUTCHours(hour, minute, 0, 0)
  const due = toTime(today) > now ? toTime(today - DAY_MS) : toTime(today)
  const attemptedAt = toKnownTime(last?.attempted_at ?? null, now)
  if (attemptedAt === null || attemptedAt < due) return true
  const succeededAt = toKnownTime(last?.succeeded_at ?? null, now)
  const isMade = succeededAt !== null && succeededAt >= due
  return !isMade && now.getTime() - attemptedAt.getTime() > RETRY_MS
}

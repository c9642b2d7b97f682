const RETRY_MS = 3_600_000

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
 * Returns whether the last time of a daily schedule was missed. The first time is due at once, and
 * a failed one an hour after it began.
 */
export function isDue(last: LastTime | undefined, { hour, minute }: Daily, now: Date): boolean {
  const due = new Date(now)
  due.setHours(hour, minute, 0, 0)
  if (due > now) due.setDate(due.getDate() - 1)
  if (!last || last.attempted_at < due) return true
  const isMade = last.succeeded_at !== null && last.succeeded_at >= due
  return !isMade && now.getTime() - last.attempted_at.getTime() > RETRY_MS
}

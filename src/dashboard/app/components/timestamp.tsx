import { signal } from '@preact/signals'
import {
  isSameDay,
  toClockTime,
  toDateTime,
  toFullTime,
  toPreciseTime,
  toShortTime,
  toTimeAgo,
} from '../time.ts'

const TICK_MS = 20_000

/** The current time for all relative times on the page, updated every 20 seconds. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, TICK_MS)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now()
})

interface TimestampOptions {
  atMs: number
  /** Shows the date for other days than today, and "ago" after a relative time. */
  hasDate?: boolean
  /** Shows the time of day instead of a relative time. */
  isClockTime?: boolean
  /** Shows the time of day with seconds instead of a relative time. */
  isPrecise?: boolean
}

/** A relative time with the full date and time as its tooltip. */
export function Timestamp({ atMs, hasDate, isClockTime, isPrecise }: TimestampOptions) {
  const toRelative = hasDate ? toTimeAgo : toShortTime
  return (
    <time dateTime={new Date(atMs).toISOString()} title={toFullTime(atMs)}>
      {hasDate && !isSameDay(atMs, now.value)
        ? toDateTime(atMs)
        : isPrecise
          ? toPreciseTime(atMs)
          : isClockTime
            ? toClockTime(atMs)
            : toRelative(atMs, now.value)}
    </time>
  )
}

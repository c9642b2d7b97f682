import { signal } from '@preact/signals'
import { isSameDay, toClockTime, toDateTime, toFullTime, toShortTime } from '../time.ts'

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
  /** Shows the date for other days than today. */
  hasDate?: boolean
  /** Shows the time of day instead of a relative time. */
  isClockTime?: boolean
}

/** A relative time with the full date and time as its tooltip. */
export function Timestamp({ atMs, hasDate = false, isClockTime = false }: TimestampOptions) {
  const isToday = isSameDay(atMs, now.value)
  return (
    <time dateTime={new Date(atMs).toISOString()} title={toFullTime(atMs)}>
      {hasDate && !isToday
        ? toDateTime(atMs)
        : isClockTime
          ? toClockTime(atMs)
          : toShortTime(atMs, now.value)}
    </time>
  )
}

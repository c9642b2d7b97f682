import { signal } from '@preact/signals'
import { isSameDay, toClockTime, toDateTime, toFullTime, toShortTime } from '../time.ts'

const TICK_MS = 20_000

/** The time by which all of the page tells how long ago something was. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, TICK_MS)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now()
})

interface TimestampOptions {
  atMs: number
  /** Says the day where it is another than today. */
  hasDate?: boolean
  /** Says the time of the day instead of how long ago it was. */
  isClockTime?: boolean
}

/** How long ago; the whole truth for whoever points at it. */
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

import { signal } from '@preact/signals'
import {
  isSameDay,
  isYoung,
  SECONDS_MS,
  toClockTime,
  toDateTime,
  toFullTime,
  toPreciseTime,
  toShortTime,
  toTimeAgo,
} from '../time.ts'

/** The current time for all relative times on the page, updated every 20 seconds. */
export const now = signal(Date.now())
/** The same for times within the last minute. */
const soon = signal(Date.now())
const tick = (time = now) => {
  if (!document.hidden) time.value = Date.now()
}
setInterval(tick, 20_000)
setInterval(tick, SECONDS_MS, soon)
document.addEventListener('visibilitychange', () => tick())

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
  // The signal says when to render again. Its time may be older than the event.
  const nowMs = Math.max(Date.now(), (isYoung(atMs, Date.now()) ? soon : now).value)
  return (
    <time dateTime={new Date(atMs).toISOString()} title={toFullTime(atMs)}>
      {hasDate && !isSameDay(atMs, nowMs)
        ? toDateTime(atMs)
        : isPrecise
          ? toPreciseTime(atMs)
          : isClockTime
            ? toClockTime(atMs)
            : (hasDate ? toTimeAgo : toShortTime)(atMs, nowMs)}
    </time>
  )
}

/** The time of a field of a response, with its date, after `word`. */
export function Moment({ word = '', at }: { word?: string; at: string }) {
  return (
    <>
      {word && `${word} `}
      <Timestamp atMs={Date.parse(at)} hasDate />
    </>
  )
}

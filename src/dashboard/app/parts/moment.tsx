import { signal } from '@preact/signals'
import { isSameDay, toDateTime, toFullTime, toShortTime } from '../time.ts'

const TICK_MS = 20_000

/** The time by which all of the page tells how long ago something was. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, TICK_MS)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now()
})

/** How long ago; the whole truth for whoever points at it. `isFar` says the day where it is another than today. */
export function Moment({ atMs, isFar = false }: { atMs: number; isFar?: boolean }) {
  return (
    <time dateTime={new Date(atMs).toISOString()} title={toFullTime(atMs)}>
      {isFar && !isSameDay(atMs, now.value) ? toDateTime(atMs) : toShortTime(atMs, now.value)}
    </time>
  )
}

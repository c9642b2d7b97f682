import { toWallClock } from '../../base/zone-rules.ts'

/** Hours of some days, in local time, in which nothing is pushed. */
export interface QuietHours {
  /** The days on which they begin, from 1 for Monday to 7. */
  days: number[]
  /** The first minute, like `22:00`. */
  from: string
  /** The minute after the last one. On the next day if it is `from` or earlier. */
  to: string
  /** The IANA name. */
  timeZone: string
}

const MINUTE_MS = 60_000
/** Zones change their offset at quarters of an hour. */
const QUARTER_MS = 15 * MINUTE_MS
const MAX_MS = 8 * 86_400_000
const MAX_WAIT_MS = 15 * 86_400_000

/**
 * Returns when the quiet hours around `now` end, where rows that meet or overlap are one time; at
 * most eight days later. Null if no row has `now`. An hour that daylight saving time skips is never
 * quiet; an hour that it repeats is quiet twice.
 */
export function quietUntil(rows: readonly QuietHours[], now: Date): Date | null {
  const startMs = now.getTime()
  let endMs = startMs
  while (endMs < startMs + MAX_MS) {
    const leftMs = Math.max(0, ...rows.map(row => findLeftMs(row, endMs)))
    if (leftMs === 0) break
    endMs += leftMs
  }
  return endMs === startMs ? null : new Date(Math.min(endMs, startMs + MAX_MS))
}

/**
 * Returns the next quiet hours that have not begun at `now`, or those around it. Null if there are
 * none within 15 days, because daylight saving time may skip an hour of a week.
 */
export function nextQuiet(rows: readonly QuietHours[], now: Date): { from: Date; to: Date } | null {
  let atMs = now.getTime()
  while (atMs < now.getTime() + MAX_WAIT_MS) {
    const from = new Date(atMs)
    const to = quietUntil(rows, from)
    if (to) return { from, to }
    atMs += Math.min(...rows.map(row => findWaitMs(row, atMs)))
  }
  return null
}

/**
 * Returns the time until a row begins next. If the offset of its zone changes before that, it
 * returns a shorter time without a change.
 */
function findWaitMs({ days, from, timeZone }: QuietHours, atMs: number): number {
  const wall = toWallClock(new Date(atMs), timeZone)
  const start = new Date(wall)
  start.setUTCHours(0, toMinutes(from), 0, 0)
  while (start <= wall || !days.includes(start.getUTCDay() || 7))
    start.setUTCDate(start.getUTCDate() + 1)
  return toEvenMs(atMs, { wall, next: start, timeZone })
}

/**
 * Returns for how long a row is quiet from a time on; 0 if it is not. If the offset of its zone
 * changes before the end of the row, it returns a shorter time without a change.
 */
function findLeftMs({ days, from, to, timeZone }: QuietHours, atMs: number): number {
  const wall = toWallClock(new Date(atMs), timeZone)
  const time = wall.toISOString().slice(11, 16)
  // The hours after midnight belong to the day before.
  const isNextDay = to <= from && time < to
  const day = ((wall.getUTCDay() + (isNextDay ? 5 : 6)) % 7) + 1
  const isIn = isNextDay || (time >= from && (time < to || to <= from))
  if (!isIn || !days.includes(day)) return 0
  const end = new Date(wall)
  end.setUTCHours(0, toMinutes(to) + (to <= from && !isNextDay ? 1_440 : 0), 0, 0)
  return toEvenMs(atMs, { wall, next: end, timeZone })
}

/** Returns the time from one wall clock to the next one, or a shorter one without a change. */
function toEvenMs(
  atMs: number,
  { wall, next, timeZone }: { wall: Date; next: Date; timeZone: string },
): number {
  const ms = next.getTime() - wall.getTime()
  const isEven = toWallClock(new Date(atMs + ms), timeZone).getTime() === next.getTime()
  return isEven ? ms : Math.min(ms, QUARTER_MS - (atMs % QUARTER_MS))
}

export function isTimeOfDay(text: string): boolean {
  return /^([01]\d|2[0-3]):[0-5]\d$/.test(text)
}

function toMinutes(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

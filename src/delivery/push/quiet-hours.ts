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
  const leftMs = end.getTime() - wall.getTime()
  const isEven = toWallClock(new Date(atMs + leftMs), timeZone).getTime() === end.getTime()
  return isEven ? leftMs : Math.min(leftMs, QUARTER_MS - (atMs % QUARTER_MS))
}

export function isTimeOfDay(text: string): boolean {
  return /^([01]\d|2[0-3]):[0-5]\d$/.test(text)
}

function toMinutes(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

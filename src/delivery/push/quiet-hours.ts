import { toWallClock } from '../../base/zone-rules.ts'

/** Hours of each day, in local time, in which nothing is pushed. */
export interface QuietHours {
  /** The first minute, counted from midnight. */
  from: number
  /** The minute after the last one. Smaller than `from` if the hours span midnight. */
  to: number
  /** The IANA name. */
  timeZone: string
}

/**
 * Returns true if `now` is in the quiet hours. An hour that daylight saving time skips is never
 * quiet; an hour that it repeats is quiet twice.
 */
export function isInQuietHours({ from, to, timeZone }: QuietHours, now: Date): boolean {
  const wall = toWallClock(now, timeZone)
  const minute = wall.getUTCHours() * 60 + wall.getUTCMinutes()
  return from < to ? minute >= from && minute < to : minute >= from || minute < to
}

/** Parses a time like `22:00` to minutes since midnight; undefined if it is invalid. */
export function parseTimeOfDay(text: string): number | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  return hours === undefined ? undefined : Number(hours) * 60 + Number(minutes)
}

export function formatTimeOfDay(minute: number): string {
  const pad = (value: number) => String(value).padStart(2, '0')
  return `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}`
}

import { toEnglish } from './locale.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** Younger events happened "now". */
const NOW_MS = 5_000
/** So did events that are ahead by less than this, because clocks may differ. */
const AHEAD_MS = 45_000
/** Relative times within the last minute are multiples of this. */
export const SECONDS_MS = 5_000

const milliseconds = toUnits('millisecond')
const seconds = toUnits('second')
const minutes = toUnits('minute')
const hours = toUnits('hour')
const rangeOfYear = toDates({ day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit' })
const range = toDates({ dateStyle: 'medium', timeStyle: 'short' })
const clock = toDates({ timeStyle: 'short' })
const precise = toDates({ timeStyle: 'medium' })
const full = toDates({ dateStyle: 'full', timeStyle: 'long' })
const date = toDates({ dateStyle: 'medium' })
const dayAndMonth = toDates({ day: 'numeric', month: 'short' })
const dayOfYear = toDates({ weekday: 'long', day: 'numeric', month: 'long' })
const day = toDates({ dateStyle: 'full' })

/** A short relative time, such as "5m". For other days than today, the time of day. */
export function toShortTime(atMs: number, nowMs: number, locale?: string): string {
  const ago = nowMs - atMs
  if (ago < NOW_MS && ago > -AHEAD_MS) return 'now'
  if (ago < 0 || !isSameDay(atMs, nowMs)) return toClockTime(atMs, locale)
  if (ago < MINUTE_MS) return seconds(locale).format(toSeconds(ago))
  if (ago < HOUR_MS) return minutes(locale).format(Math.floor(ago / MINUTE_MS))
  return hours(locale).format(Math.floor(ago / HOUR_MS))
}

/** The same in a sentence: "now", "5m ago", or the time of day. */
export function toTimeAgo(atMs: number, nowMs: number, locale?: string): string {
  const time = toShortTime(atMs, nowMs, locale)
  return nowMs - atMs < NOW_MS || !isSameDay(atMs, nowMs) ? time : `${time} ago`
}

/** Rounds down, so that the text changes as seldom as the page looks at it. */
function toSeconds(ms: number): number {
  return (Math.floor(ms / SECONDS_MS) * SECONDS_MS) / SECOND_MS
}

/** Returns whether an event is shown with its seconds. */
export function isYoung(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) < MINUTE_MS
}

/** A short duration, such as "380ms" or "1.5s". */
export function toDuration(ms: number, locale?: string): string {
  if (ms < SECOND_MS) return milliseconds(locale).format(ms)
  if (ms < MINUTE_MS) return seconds(locale).format(ms / SECOND_MS)
  if (ms < HOUR_MS) return minutes(locale).format(Math.round(ms / MINUTE_MS))
  return hours(locale).format(Math.round(ms / HOUR_MS))
}

/** The full date and time, for tooltips. */
export function toFullTime(atMs: number, locale?: string): string {
  return full(locale).format(atMs)
}

/** The time of day with seconds, for columns of times. */
export function toPreciseTime(atMs: number, locale?: string): string {
  return precise(locale).format(atMs)
}

/** A date without its year, for the axis of a chart. */
export function toDayAndMonth(atMs: number, locale?: string): string {
  return dayAndMonth(locale).format(atMs)
}

export function toClockTime(atMs: number, locale?: string): string {
  return clock(locale).format(atMs)
}

/** A time range in its shortest form. */
export function toRangeName(fromMs: number, toMs: number, locale?: string): string {
  return toRangeFormat(fromMs, locale).formatRange(fromMs, toMs)
}

/** A date and time. */
export function toDateTime(atMs: number, locale?: string): string {
  return toRangeFormat(atMs, locale).format(atMs)
}

/** A date, without the current year. */
export function toDate(atMs: number, locale?: string): string {
  return (isThisYear(atMs) ? dayAndMonth : date)(locale).format(atMs)
}

/** Leaves out the current year. */
function toRangeFormat(atMs: number, locale: string | undefined): Intl.DateTimeFormat {
  return (isThisYear(atMs) ? rangeOfYear : range)(locale)
}

function isThisYear(atMs: number, nowMs = Date.now()): boolean {
  return new Date(atMs).getFullYear() === new Date(nowMs).getFullYear()
}

/** The name of the last `hours` hours. */
export const toPeriodName = (hours: number) => `Last ${toLength(hours)}`

/** The length of a period, after "the" or "last". */
export function toLength(hours: number): string {
  if (hours === 1) return 'hour'
  const isDays = hours >= 168 && hours % 24 === 0
  return isDays ? `${hours / 24} days` : `${hours.toLocaleString()} hours`
}

/** "Today", "Yesterday" or the date, without the current year. */
export function toDayName(atMs: number, nowMs: number, locale?: string): string {
  if (isSameDay(atMs, nowMs)) return 'Today'
  const yesterday = new Date(nowMs)
  yesterday.setDate(yesterday.getDate() - 1)
  if (isSameDay(atMs, yesterday.getTime())) return 'Yesterday'
  return (isThisYear(atMs, nowMs) ? dayOfYear : day)(locale).format(atMs)
}

/** Returns whether both times are on the same local day. */
export function isSameDay(oneMs: number, otherMs: number): boolean {
  return new Date(oneMs).toDateString() === new Date(otherMs).toDateString()
}

/**
 * Makes a formatter for each reader when it is first needed. Making one takes a thousand times as
 * long as using it.
 */
function perReader<Format>(make: (locale: string) => Format): (reader?: string) => Format {
  const made = new Map<string | undefined, Format>()
  return reader => {
    const format = made.get(reader) ?? make(toEnglish(reader))
    made.set(reader, format)
    return format
  }
}

function toDates(options: Intl.DateTimeFormatOptions) {
  return perReader(locale => new Intl.DateTimeFormat(locale, options))
}

function toUnits(unit: string) {
  return perReader(
    locale =>
      new Intl.NumberFormat(locale, {
        style: 'unit',
        unit,
        unitDisplay: 'narrow',
        maximumFractionDigits: 1,
      }),
  )
}

/** The value of a datetime-local input for a time, in local time. */
export function toInputTime(atMs: number): string {
  const date = new Date(atMs)
  return new Date(atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The ISO 8601 time of a datetime-local input. Invalid input is returned as it is. */
export function fromInputTime(text: string): string {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? text : date.toISOString()
}

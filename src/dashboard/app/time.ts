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

/** A short relative time, such as "5m". For other days than today, the time of day. */
export function toShortTime(atMs: number, nowMs: number, locale?: string): string {
  const ago = nowMs - atMs
  if (ago < NOW_MS && ago > -AHEAD_MS) return 'now'
  if (ago < 0 || !isSameDay(atMs, nowMs)) return toClockTime(atMs, locale)
  const { seconds, minutes, hours } = formats.get(locale)
  if (ago < MINUTE_MS) return seconds.format(toSeconds(ago))
  if (ago < HOUR_MS) return minutes.format(Math.floor(ago / MINUTE_MS))
  return hours.format(Math.floor(ago / HOUR_MS))
}

/** The same in a sentence: "now", "5 min. ago", or the time of day. */
export function toTimeAgo(atMs: number, nowMs: number, locale?: string): string {
  const ago = nowMs - atMs
  if (ago < NOW_MS || !isSameDay(atMs, nowMs)) return toShortTime(atMs, nowMs, locale)
  const { relative } = formats.get(locale)
  if (ago < MINUTE_MS) return relative.format(-toSeconds(ago), 'second')
  if (ago < HOUR_MS) return relative.format(-Math.floor(ago / MINUTE_MS), 'minute')
  return relative.format(-Math.floor(ago / HOUR_MS), 'hour')
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
  const { milliseconds, seconds, minutes, hours } = formats.get(locale)
  if (ms < SECOND_MS) return milliseconds.format(ms)
  if (ms < MINUTE_MS) return seconds.format(ms / SECOND_MS)
  if (ms < HOUR_MS) return minutes.format(Math.round(ms / MINUTE_MS))
  return hours.format(Math.round(ms / HOUR_MS))
}

/** The full date and time, for tooltips. */
export function toFullTime(atMs: number, locale?: string): string {
  return formats.get(locale).full.format(atMs)
}

/** The time of day with seconds, for columns of times. */
export function toPreciseTime(atMs: number, locale?: string): string {
  return formats.get(locale).precise.format(atMs)
}

/** A date without its year, for the axis of a chart. */
export function toDayAndMonth(atMs: number, locale?: string): string {
  return formats.get(locale).dayAndMonth.format(atMs)
}

export function toClockTime(atMs: number, locale?: string): string {
  return formats.get(locale).clock.format(atMs)
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
  const { date, dayAndMonth } = formats.get(locale)
  return (isThisYear(atMs) ? dayAndMonth : date).format(atMs)
}

/** Leaves out the current year. */
function toRangeFormat(atMs: number, locale: string | undefined): Intl.DateTimeFormat {
  const { range, rangeOfYear } = formats.get(locale)
  return isThisYear(atMs) ? rangeOfYear : range
}

function isThisYear(atMs: number, nowMs = Date.now()): boolean {
  return new Date(atMs).getFullYear() === new Date(nowMs).getFullYear()
}

/** "Today", "Yesterday" or the date, without the current year. */
export function toDayName(atMs: number, nowMs: number, locale?: string): string {
  if (isSameDay(atMs, nowMs)) return 'Today'
  const yesterday = new Date(nowMs)
  yesterday.setDate(yesterday.getDate() - 1)
  if (isSameDay(atMs, yesterday.getTime())) return 'Yesterday'
  const { day, dayOfYear } = formats.get(locale)
  return (isThisYear(atMs, nowMs) ? dayOfYear : day).format(atMs)
}

/** Returns whether both times are on the same local day. */
export function isSameDay(oneMs: number, otherMs: number): boolean {
  return new Date(oneMs).toDateString() === new Date(otherMs).toDateString()
}

// Creating a formatter takes a thousand times as long as using it.
const formats = {
  made: new Map<string | undefined, ReturnType<typeof makeFormats>>(),
  get(reader?: string) {
    const made = this.made.get(reader) ?? makeFormats(toEnglish(reader))
    this.made.set(reader, made)
    return made
  },
}

function makeFormats(locale: string) {
  return {
    milliseconds: toUnits(locale, 'millisecond'),
    seconds: toUnits(locale, 'second'),
    minutes: toUnits(locale, 'minute'),
    hours: toUnits(locale, 'hour'),
    relative: new Intl.RelativeTimeFormat(locale, { style: 'short' }),
    rangeOfYear: new Intl.DateTimeFormat(locale, {
      day: 'numeric',
      month: 'short',
      hour: 'numeric',
      minute: '2-digit',
    }),
    range: new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }),
    clock: new Intl.DateTimeFormat(locale, { timeStyle: 'short' }),
    precise: new Intl.DateTimeFormat(locale, { timeStyle: 'medium' }),
    full: new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' }),
    date: new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }),
    dayAndMonth: new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' }),
    dayOfYear: new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' }),
    day: new Intl.DateTimeFormat(locale, { dateStyle: 'full' }),
  }
}

function toUnits(locale: string, unit: string) {
  return new Intl.NumberFormat(locale, {
    ...{ style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: 1 },
  })
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** What is this close is now, whichever of two clocks is a little ahead. */
const NOW_MS = 45_000

/** How long ago, in few letters; for another day than today's the time of the day. */
export function toShortTime(atMs: number, nowMs: number, locale?: string): string {
  const ago = nowMs - atMs
  if (Math.abs(ago) < NOW_MS) return 'now'
  if (ago < 0 || !isSameDay(atMs, nowMs)) return toClockTime(atMs, locale)
  const { minutes, hours } = formats.get(locale)
  if (ago < HOUR_MS) return minutes.format(Math.max(1, Math.floor(ago / MINUTE_MS)))
  return hours.format(Math.floor(ago / HOUR_MS))
}

/** How long it took, in few letters. */
export function toDuration(ms: number, locale?: string): string {
  const { milliseconds, seconds, minutes, hours } = formats.get(locale)
  if (ms < SECOND_MS) return milliseconds.format(ms)
  if (ms < MINUTE_MS) return seconds.format(ms / SECOND_MS)
  if (ms < HOUR_MS) return minutes.format(Math.round(ms / MINUTE_MS))
  return hours.format(Math.round(ms / HOUR_MS))
}

/** The whole truth, for whoever points at it. */
export function toFullTime(atMs: number, locale?: string): string {
  return formats.get(locale).full.format(atMs)
}

export function toClockTime(atMs: number, locale?: string): string {
  return formats.get(locale).clock.format(atMs)
}

/** From one moment to another, no longer than it takes. */
export function toRangeName(fromMs: number, toMs: number, locale?: string): string {
  return toRangeFormat(fromMs, locale).formatRange(fromMs, toMs)
}

/** A day and its time, for whoever looks closely. */
export function toDateTime(atMs: number, locale?: string): string {
  return toRangeFormat(atMs, locale).format(atMs)
}

/** The year is said only where it is another one. */
function toRangeFormat(atMs: number, locale: string | undefined): Intl.DateTimeFormat {
  const { range, rangeOfYear } = formats.get(locale)
  return new Date(atMs).getFullYear() === new Date().getFullYear() ? rangeOfYear : range
}

/** The day as people name it; the year only where it is another one. */
export function toDayName(atMs: number, nowMs: number, locale?: string): string {
  if (isSameDay(atMs, nowMs)) return 'Today'
  const yesterday = new Date(nowMs)
  yesterday.setDate(yesterday.getDate() - 1)
  if (isSameDay(atMs, yesterday.getTime())) return 'Yesterday'
  const { day, dayOfYear } = formats.get(locale)
  const isThisYear = new Date(atMs).getFullYear() === new Date(nowMs).getFullYear()
  return (isThisYear ? dayOfYear : day).format(atMs)
}

/** Whether both are on one day of the reader's calendar. */
export function isSameDay(oneMs: number, otherMs: number): boolean {
  return new Date(oneMs).toDateString() === new Date(otherMs).toDateString()
}

// A formatter takes a thousand times as long to make as to use.
const formats = {
  made: new Map<string | undefined, ReturnType<typeof makeFormats>>(),
  get(locale: string | undefined) {
    const made = this.made.get(locale) ?? makeFormats(locale)
    this.made.set(locale, made)
    return made
  },
}

function makeFormats(locale: string | undefined) {
  return {
    milliseconds: toUnits(locale, 'millisecond'),
    seconds: toUnits(locale, 'second'),
    minutes: toUnits(locale, 'minute'),
    hours: toUnits(locale, 'hour'),
    rangeOfYear: new Intl.DateTimeFormat(locale, {
      day: 'numeric',
      month: 'short',
      hour: 'numeric',
      minute: '2-digit',
    }),
    range: new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }),
    clock: new Intl.DateTimeFormat(locale, { timeStyle: 'short' }),
    full: new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' }),
    dayOfYear: new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' }),
    day: new Intl.DateTimeFormat(locale, { dateStyle: 'full' }),
  }
}

function toUnits(locale: string | undefined, unit: string) {
  return new Intl.NumberFormat(locale, {
    ...{ style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: 1 },
  })
}

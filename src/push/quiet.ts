/** Hours of every day, as a clock on the wall shows them, in which nothing is pushed. */
export interface QuietHours {
  /** Minutes since midnight; it begins with this one. */
  from: number
  /** And ends before this one; earlier than `from` where midnight lies between. */
  to: number
  /** IANA's name of the time zone. */
  timeZone: string
}

/**
 * Whether `now` is quiet. What the clock on the wall shows counts: where it leaps over the hour at which quiet begins,
 * quiet begins after the leap, and an hour that it shows twice is quiet twice.
 */
export function isQuiet({ from, to, timeZone }: QuietHours, now: Date): boolean {
  const minute = toWallMinute(now, timeZone)
  return from < to ? minute >= from && minute < to : minute >= from || minute < to
}

/** Minutes since midnight of `22:00`, undefined for what is no time of a day. */
export function parseTime(text: string): number | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  return hours === undefined ? undefined : Number(hours) * 60 + Number(minutes)
}

export function toTime(minute: number): string {
  const pad = (value: number) => String(value).padStart(2, '0')
  return `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}`
}

/** Whether the runtime knows a time zone of this name. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(name)) return false
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

function toWallMinute(now: Date, timeZone: string): number {
  const format = new Intl.DateTimeFormat('en', {
    timeZone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, Number(value)]))
  return (parts.get('hour') ?? 0) * 60 + (parts.get('minute') ?? 0)
}

// JavaScript misreads earlier years in the format of Postgres: it takes the year 99 for 1999.
const FIRST_MS = Date.parse('0100-01-01T00:00:00Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
const SHAPE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?([Zz]|[+-]\d\d(?::?\d\d)?))?$/

// As seconds, this number is in the year 5138; as milliseconds, in March 1973.
const FIRST_UNIX_MS = 1e11

/**
 * Parses ISO 8601 text, or a number of Unix seconds or milliseconds. Returns milliseconds since
 * 1970, or undefined for anything else.
 */
export function parseTimestamp(timestamp: string | number): number | undefined {
  if (typeof timestamp === 'string') return parseIsoTimestamp(timestamp)
  const ms = Math.round(timestamp >= FIRST_UNIX_MS ? timestamp : timestamp * 1000)
  return ms >= 0 && ms <= LAST_MS ? ms : undefined
}

/**
 * Parses an ISO 8601 date (midnight UTC), or a date and time with a time zone. Returns milliseconds
 * since 1970, or undefined for anything else.
 */
export function parseIsoTimestamp(text: string): number | undefined {
  const match = SHAPE.exec(text)
  if (!match) return undefined
  const [
    ,
    year,
    month,
    day,
    hour = '00',
    minute = '00',
    second = '00',
    fraction = '0',
    zone = 'Z',
  ] = match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined
  const midnight = Date.parse(`${year}-${month}-${day}T00:00:00Z`)
  // JavaScript rejects a day that does not exist, or moves it to the next month.
  if (Number.isNaN(midnight) || new Date(midnight).getUTCDate() !== Number(day)) return undefined
  const offset = toOffsetMinutes(zone)
  if (offset === undefined) return undefined
  // A leap second counts as the last millisecond of its minute.
  const ms =
    Number(second) === 60
      ? 59_999
      : Number(second) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'))
  const total = midnight + (Number(hour) * 60 + Number(minute) - offset) * 60_000 + ms
  return total >= FIRST_MS && total <= LAST_MS ? total : undefined
}

function toOffsetMinutes(zone: string): number | undefined {
  const match = /^([+-])(\d\d):?(\d\d)?$/.exec(zone)
  if (!match) return 0
  const [, sign, hours, minutes = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

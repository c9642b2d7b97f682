// JavaScript misreads earlier years in the format of Postgres: it takes the year 99 for 1999.
const FIRST_MS = Date.parse('0100-01-01T00:00:00Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
const SHAPE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?( ?(?:[Zz]|[+-]\d\d(?::?\d\d)?))?)?$/
// The basic form of ISO 8601, like 20261120T093000Z.
const BASIC = /^(\d{4})(\d\d)(\d\d)([Tt ]\d\d)(\d\d)(\d\d)?/
// RFC 9557 adds the name of the zone, like [Europe/Paris]. The offset before it decides.
const ZONE_NAME = /(?:\[[^[\]]{1,100}\]){1,3}$/
const UNIX = /^\d{1,15}(?:\.\d{1,9})?$/
const ZERO = /^0001-01-01[Tt ]00:00:00/

// As seconds, this number is in the year 5138; as milliseconds, in March 1973.
const FIRST_UNIX_MS = 1e11

/**
 * Parses ISO 8601 text, or Unix seconds or milliseconds as a number or text. Returns milliseconds
 * since 1970, or undefined for anything else.
 */
export function parseTimestamp(timestamp: string | number): number | undefined {
  if (typeof timestamp === 'string' && !UNIX.test(timestamp)) return parseIsoTimestamp(timestamp)
  const number = Number(timestamp)
  const ms = Math.round(number >= FIRST_UNIX_MS ? number : number * 1000)
  return ms >= 0 && ms <= LAST_MS ? ms : undefined
}

/**
 * Parses an ISO 8601 date (midnight UTC), or a date and time with an offset, in the extended or
 * basic form, with or without the zone's name of RFC 9557. Returns milliseconds since 1970, or
 * undefined for anything else.
 */
export function parseIsoTimestamp(text: string): number | undefined {
  const match = SHAPE.exec(toExtended(text))
  if (!match || isWithoutZone(match)) return undefined
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
  const match = /^([+-])(\d\d):?(\d\d)?$/.exec(zone.trim())
  if (!match) return 0
  const [, sign, hours, minutes = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** Returns why `parseTimestamp` does not take a text. */
export function explainTimestamp(text: string): string {
  const extended = toExtended(text)
  if (UNIX.test(text)) return 'Must be Unix seconds or milliseconds'
  if (ZERO.test(extended)) return 'Is the zero time of Go and .NET, which was never set'
  const match = SHAPE.exec(extended)
  if (match && isWithoutZone(match)) return 'Has no time zone; add Z or an offset, like +01:00'
  const year = Number(match?.[1])
  if (year > 100 && year < 9999) return 'Has a day, time or offset that does not exist'
  return 'Must be ISO 8601 with a time zone, like 2026-11-20T09:30:00Z'
}

function toExtended(text: string): string {
  return text
    .replace(ZONE_NAME, '')
    .replace(
      BASIC,
      (_, year, month, day, hour, minute, second = '00') =>
        `${year}-${month}-${day}${hour}:${minute}:${second}`,
    )
}

/** Returns whether a match of `SHAPE` has a time of day, but no offset. */
function isWithoutZone([, , , , hour, , , , zone]: RegExpExecArray): boolean {
  return hour !== undefined && zone === undefined
}

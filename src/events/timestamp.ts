import { Kind, Type } from '@sinclair/typebox'
import { defineRule, invalidType, issue, NO_ISSUES, type Rule } from '../http/rules.ts'

const MAX_AHEAD_MS = 5 * 60_000
// What Postgres writes of the years between, JavaScript reads as the same year: of year 99 as 1999.
const FIRST_MS = Date.parse('0100-01-01T00:00:00Z')
const YEAR = '^(?!00)\\d{4}-'
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
const SHAPE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?([Zz]|[+-]\d\d(?::?\d\d)?))?$/

const instant: Rule = value => {
  if (typeof value !== 'string') return invalidType('string', value)
  if (parseTimestamp(value) !== undefined) return NO_ISSUES
  return issue('invalid_format', 'Must be ISO 8601 with a time zone, like 2026-11-20T09:30:00Z')
}
const INSTANT = defineRule('Instant', instant)

const TIMESTAMP = defineRule('Timestamp', (value, schema) => {
  const issues = instant(value, schema)
  if (issues.length > 0) return issues
  // The server's own clock will do for a bound against nonsense. `instant` has seen that it is text.
  return isTooFarAhead(parseTimestamp(value as string) ?? 0)
    ? issue('out_of_range', 'Must be at most 5 minutes in the future')
    : NO_ISSUES
})

/** A moment, as filters take it. */
export function Instant(description: string) {
  return Type.Unsafe<string>({
    [Kind]: INSTANT,
    type: 'string',
    format: 'date-time',
    pattern: YEAR,
    description,
  })
}

/** When an event happened, for those that are reported later. */
export const Timestamp = Type.Unsafe<string>({
  [Kind]: TIMESTAMP,
  type: 'string',
  format: 'date-time',
  pattern: YEAR,
  description:
    'When it happened, at most 5 minutes in the future; the moment of creation by default.',
  examples: ['2026-11-20T09:30:00Z'],
})

/** Whether a moment, in milliseconds since 1970, is further ahead than clocks differ. */
export function isTooFarAhead(ms: number): boolean {
  return ms > Date.now() + MAX_AHEAD_MS
}

/** Milliseconds since 1970 of an ISO 8601 date, or date and time with a zone; undefined for anything else. */
export function parseTimestamp(text: string): number | undefined {
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
  // A day that does not exist is refused or moved into the next month.
  if (Number.isNaN(midnight) || new Date(midnight).getUTCDate() !== Number(day)) return undefined
  const offset = toOffsetMinutes(zone)
  if (offset === undefined) return undefined
  // A leap second is the last moment of its minute.
  const ms =
    Number(second) === 60
      ? 59_999
      : Number(second) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'))
  const moment = midnight + (Number(hour) * 60 + Number(minute) - offset) * 60_000 + ms
  return moment >= FIRST_MS && moment <= LAST_MS ? moment : undefined
}

function toOffsetMinutes(zone: string): number | undefined {
  const match = /^([+-])(\d\d):?(\d\d)?$/.exec(zone)
  if (!match) return 0
  const [, sign, hours, minutes = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

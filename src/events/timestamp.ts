import { Kind, Type } from '@sinclair/typebox'
import { defineRule, invalidType, issue, NO_ISSUES, type Rule } from '../http/rules.ts'
import { parseTimestamp } from './moment.ts'

const MAX_AHEAD_MS = 5 * 60_000
const YEAR = '^(?!00)\\d{4}-'

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

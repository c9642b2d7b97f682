import { Kind, Type } from '@sinclair/typebox'
import { isRawNumber } from './raw-number.ts'
import { NO_ISSUES, countPoints, defineRule, invalidType, type Issue } from './rules.ts'
import { findBadText } from './text.ts'

const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 32
const MAX_KEYS = 1_000
const MAX_KEY_LENGTH = 256
const MAX_MAGNITUDE = 1e100
const MAX_ISSUES = 20

const JSON_OBJECT = defineRule('JsonObject', value => {
  if (!isObject(value)) return invalidType('object', value)
  const issues: Issue[] = []
  inspect(value, [], issues)
  if (issues.length > 0) return issues
  return isTooLarge(value)
    ? [{ path: [], code: 'too_long', message: 'Must be at most 64 KiB as JSON text' }]
    : NO_ISSUES
})

/** A JSON object that is kept and returned as it was sent. */
export function JsonObject(description: string) {
  return Type.Unsafe<Record<string, unknown>>({
    [Kind]: JSON_OBJECT,
    type: 'object',
    additionalProperties: true,
    maxProperties: MAX_KEYS,
    propertyNames: { maxLength: MAX_KEY_LENGTH },
    description:
      `${description} At most 64 KiB as text, 32 levels deep, and 1,000 keys of up to 256 characters in each object; ` +
      'integers up to ±(2^53-1), other numbers up to 1e100.',
  })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)
}

function isTooLarge(value: object): boolean {
  const text = JSON.stringify(value)
  return (
    text.length > MAX_BYTES || (text.length > MAX_BYTES / 3 && Buffer.byteLength(text) > MAX_BYTES)
  )
}

/** Collects what is wrong in `value` and below it; `path` leads there from the object. */
function inspect(value: unknown, path: string[], issues: Issue[]): void {
  if (issues.length >= MAX_ISSUES) return
  const report = (code: Issue['code'], message: string, key?: string) =>
    issues.push({ path: key === undefined ? [...path] : [...path, key], code, message })

  if (typeof value === 'string') {
    const bad = findBadText(value)
    if (bad) report('invalid_encoding', bad)
  } else if (typeof value === 'number') {
    if (isOutOfRange(value))
      report('out_of_range', 'Must be a number that is kept exactly, up to ±(2^53-1) or 1e100')
  } else if (typeof value === 'object' && value !== null) {
    if (path.length >= MAX_DEPTH)
      return void report('too_deep', `Must be at most ${MAX_DEPTH} levels deep`)
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        if (needsLook(item)) inspect(item, [...path, String(index)], issues)
      })
      return
    }
    const keys = Object.keys(value)
    if (keys.length > MAX_KEYS) report('too_many', `Must have at most ${MAX_KEYS} keys`)
    for (const key of keys) {
      const bad = findBadText(key)
      if (bad) report('invalid_encoding', bad, key)
      else if (key.length > MAX_KEY_LENGTH && countPoints(key) > MAX_KEY_LENGTH) {
        report('too_long', `A key must have at most ${MAX_KEY_LENGTH} characters`, key.slice(0, 40))
      }
      // Object.keys lists own keys alone, so `__proto__` here is the caller's.
      const item = (value as Record<string, unknown>)[key]
      if (needsLook(item)) inspect(item, [...path, key], issues)
    }
  }
}

function needsLook(value: unknown): boolean {
  return typeof value !== 'boolean' && value !== null && !isRawNumber(value)
}

/** body.ts has refused integers that lost digits already; what is left is what no double can hold or jsonb would swell. */
function isOutOfRange(value: number): boolean {
  return !Number.isFinite(value) || Math.abs(value) > MAX_MAGNITUDE
}

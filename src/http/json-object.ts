import { Kind, Type } from '@sinclair/typebox'
import { isRawNumber, toNumberText } from './exact-json.ts'
import { defineRule, invalidType, NO_ISSUES, type Issue } from './rules.ts'

/** The largest exponent of a number. Postgres' `numeric` holds every number within it. */
const MAX_EXPONENT = 10_000
const MAX_ISSUES = 20

// Reading the body has already checked its size, depth and strings.
const JSON_OBJECT = defineRule('JsonObject', value => {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)
  if (!isObject) return invalidType('object', value)
  const issues: Issue[] = []
  checkNumbers(value, [], issues)
  return issues.length > 0 ? issues : NO_ISSUES
})

/**
 * The schema of a JSON object that is stored and returned exactly as sent, including its numbers.
 */
export function JsonObject(description: string) {
  return Type.Unsafe<Record<string, unknown>>({
    [Kind]: JSON_OBJECT,
    type: 'object',
    additionalProperties: true,
    description:
      `${description} Any JSON object that fits into the body. Numbers are returned exactly as sent. Exponents ` +
      `range from -10,000 to 10,000.`,
  })
}

/** Collects the numbers in `value` whose exponent is out of bounds; `path` leads to `value`. */
function checkNumbers(value: object, path: string[], issues: Issue[]): void {
  for (const [key, item] of Object.entries(value)) {
    if (issues.length >= MAX_ISSUES) return
    if (typeof item !== 'object' || item === null) continue
    if (!isRawNumber(item)) checkNumbers(item, [...path, key], issues)
    else if (hasLargeExponent(item)) {
      const message = `Must have an exponent from -${MAX_EXPONENT} to ${MAX_EXPONENT}`
      issues.push({ path: [...path, key], code: 'out_of_range', message })
    }
  }
}

function hasLargeExponent(raw: object): boolean {
  const exponent = /[eE](.*)$/.exec(toNumberText(raw))?.[1]
  return exponent !== undefined && Math.abs(Number(exponent)) > MAX_EXPONENT
}

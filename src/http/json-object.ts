import { Kind, Type } from '@sinclair/typebox'
import { isRawNumber, toNumberText } from './exact-json.ts'
import { defineRule, invalidType, NO_ISSUES, type Issue } from './rules.ts'

/** The largest exponent of a number. Postgres' `numeric` holds every number within it. */
const MAX_EXPONENT = 10_000
const MIN_EXPONENT = -MAX_EXPONENT
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

/**
 * Collects the numbers in `value` whose exponent is out of bounds; `path` leads to `value`. A body
 * can have 80,000 values, so only those that can be at fault cost more than a look.
 */
function checkNumbers(value: object, path: (string | number)[], issues: Issue[]): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) checkItem(value[index], index)
  } else {
    const fields = value as Record<string, unknown>
    // JSON has no inherited fields.
    for (const key in fields) checkItem(fields[key], key)
  }

  function checkItem(item: unknown, key: string | number): void {
    if (typeof item !== 'object' || item === null || issues.length >= MAX_ISSUES) return
    path.push(key)
    if (!isRawNumber(item)) checkNumbers(item, path, issues)
    else if (hasLargeExponent(item)) {
      const message = `Must have an exponent from ${MIN_EXPONENT} to ${MAX_EXPONENT}`
      issues.push({ path: path.map(String), code: 'out_of_range', message })
    }
    path.pop()
  }
}

function hasLargeExponent(raw: object): boolean {
  const text = toNumberText(raw)
  const at = Math.max(text.indexOf('e'), text.indexOf('E'))
  return at > 0 && Math.abs(Number(text.slice(at + 1))) > MAX_EXPONENT
}

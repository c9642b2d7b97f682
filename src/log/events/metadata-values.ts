import { isNumberText, isRawNumber, toCanonicalNumber } from '../../http/exact-json.ts'
import type { Event } from './schema.ts'
import { listPaths, splitMetadata } from './search-filters.ts'

// The values of metadata. Pure: it also runs in the browser.

/** Returns whether metadata matches a `meta:` term. Compares as text, and numbers by value. */
export function matchesMetadata(event: Pick<Event, 'metadata'>, text: string): boolean {
  const { path, value } = splitMetadata(text) ?? { path: [], value: '' }
  return listPaths(path).some(one => hasValue(event, one, value))
}

function hasValue(event: Pick<Event, 'metadata'>, path: readonly string[], value: string): boolean {
  const found = path.reduce<unknown>(
    (one, name) => (isObject(one) && Object.keys(one).includes(name) ? one[name] : undefined),
    event.metadata,
  )
  if (found === undefined) return false
  return toMetadataText(found) === value || (isNumber(found) && isSameNumber(found, value))
}

/** A value as written in a `meta:` term. Numbers have the digits that were sent. */
export function toMetadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns whether a value is a number, which can be an object that keeps its digits. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isRawNumber(value)
}

/** Returns whether a value has others inside: an object or an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !isRawNumber(value)
}

/** Numbers compare by value: 1.0 equals 1. Very long ones compare as text, as in the database. */
function isSameNumber(found: unknown, value: string): boolean {
  const text = toMetadataText(found)
  const [one, other] = [text, value].map(toCanonicalNumber)
  return (
    text.length <= 200 && isNumberText(value) && (one === other || (isZero(one) && isZero(other)))
  )
}

function isZero(canonical: string | undefined): boolean {
  return canonical === '0' || canonical === '-0'
}

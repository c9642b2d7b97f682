import { isNumberText, isRawNumber, parseExact, toCanonicalNumber } from '../../http/exact-json.ts'
import type { Event } from './schema.ts'
import { listPaths, splitMetadata } from './search-filters.ts'

// The names and values of metadata. Pure: it also runs in the browser.

const MAX_DEPTH = 5
const MAX_NAMES = 1_000
const MAX_VALUE_LENGTH = 100

/** Returns whether metadata matches a `meta:` term. Compares as text, and numbers by value. */
export function matchesMetadata(event: Pick<Event, 'metadata'>, text: string): boolean {
  const { path, value } = splitMetadata(text) ?? { path: [], value: '' }
  return listPaths(path).some(one => hasValue(event, one, value))
}

function hasValue(event: Pick<Event, 'metadata'>, path: readonly string[], value: string): boolean {
  const found = readPath(event.metadata, path)
  if (found === undefined) return false
  return toMetadataText(found) === value || (isNumber(found) && isSameNumber(found, value))
}

/** Returns what an object or array has at a path; undefined if nothing. */
export function readPath(value: unknown, path: readonly string[]): unknown {
  const has = Object.prototype.propertyIsEnumerable
  return path.reduce(
    (one, name) => (isObject(one) && has.call(one, name) ? one[name] : undefined),
    value,
  )
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

/** A path in the metadata, or a path with a value, and how often it was found. */
interface MetadataName {
  value: string
  count: number
}

/**
 * Collects what a `meta:` term can have, from the JSON of some metadata: paths like `order.plan=`,
 * or with a `=` in the wanted text the values of that path, like `order.plan=pro`. It leaves out
 * what a search cannot express: empty names, names with a dot or `=`, and long values.
 */
export function collectMetadata(texts: readonly string[], wanted: string): MetadataName[] {
  const counts = new Map<string, number>()
  const at = wanted.indexOf('=')
  const path = at < 0 ? undefined : wanted.slice(0, at)
  const add = (name: string) => {
    const known = counts.get(name)
    if (known !== undefined || counts.size < MAX_NAMES) counts.set(name, (known ?? 0) + 1)
  }
  const visit = (value: object, prefix: string, depth: number) => {
    for (const [name, one] of Object.entries(value)) {
      if (name === '' || /[.=]/.test(name)) continue
      const full = `${prefix}${name}`
      if (isObject(one)) {
        if (depth < MAX_DEPTH) visit(one, `${full}.`, depth + 1)
      } else if (path === undefined) add(`${full}=`)
      else if (full === path && isExpressible(one)) add(`${full}=${toMetadataText(one)}`)
    }
  }
  for (const text of texts) {
    // The column holds objects alone.
    visit(parseExact(text).value as object, '', 1)
  }
  return [...counts].map(([value, count]) => ({ value, count }))
}

/** Returns whether a value can be searched for. */
function isExpressible(value: unknown): boolean {
  return (
    value !== null &&
    toMetadataText(value).length <= MAX_VALUE_LENGTH &&
    toMetadataText(value).trim() !== ''
  )
}

import { parseSearch, type ParsedSearch } from '../../../log/events/search-query.ts'
import type { SearchTerm } from '../../../log/events/search-lexer.ts'
import { parseIsoTimestamp } from '../../../log/events/timestamp.ts'

// Readers write and read dates of their own time zone. Addresses, views and cards have the exact
// times, so that they mean the same for every reader, and for the server.

/** Names of days, by their age. */
export const DAYS: readonly string[] = ['today', 'yesterday']

/** Parses a search as its reader typed it. */
export function parseTyped(text: string, nowMs?: number): ParsedSearch {
  return parseSearch(text, nowMs, parseReaderTime)
}

/** Converts a typed search to one with exact times. */
export function toExactText(typed: string): string {
  return replaceTimes(typed, parseReaderTime, toExactTime)
}

/** Converts a search with exact times to the one that this reader would type. */
export function toReaderText(text: string): string {
  return replaceTimes(text, parseIsoTimestamp, ms => findReaderTime(ms) ?? toExactTime(ms))
}

/** Returns whether a day of this reader begins at a time. */
export function isStartOfDay(ms: number): boolean {
  return new Date(ms).setHours(0, 0, 0, 0) === ms
}

/**
 * Parses a time, in the reader's zone if it has none. A date begins with the first moment of the
 * day, which is not always midnight. Of a time that the clock shows twice, it takes the first one.
 * A time that the clock leaves out is as much later as the clock was put forward.
 */
function parseReaderTime(given: string): number | undefined {
  const text = toDate(given)
  const isDate = /^[-\d]+$/.test(text)
  const exact = parseIsoTimestamp(text)
  if (exact !== undefined && !isDate) return exact
  const wall = parseIsoTimestamp(isDate ? text : `${text}Z`)
  if (wall === undefined) return undefined
  const date = new Date(wall)
  const ms = new Date(
    ...([date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()] as const),
    ...([date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()] as const),
    date.getUTCMilliseconds(),
  ).getTime()
  return parseIsoTimestamp(new Date(ms).toISOString())
}

/** Returns the date that `today` and `yesterday` stand for, and other texts as they are. */
function toDate(text: string): string {
  const age = DAYS.indexOf(text.toLowerCase())
  if (age < 0) return text
  const day = new Date()
  // Noon, which is there on every day.
  day.setHours(12)
  day.setDate(day.getDate() - age)
  return findReaderTime(day.getTime())?.slice(0, 10) ?? text
}

/** Returns the shortest text that the reader's zone has for a time; undefined if it has none. */
function findReaderTime(ms: number): string | undefined {
  const date = new Date(ms)
  const wall = new Date(0)
  wall.setUTCFullYear(date.getFullYear(), date.getMonth(), date.getDate())
  wall.setUTCHours(date.getHours(), date.getMinutes(), date.getSeconds(), date.getMilliseconds())
  // The date; with minutes, seconds and milliseconds.
  return [10, 16, 19, 23]
    .map(length => wall.toISOString().slice(0, length))
    .find(text => parseReaderTime(text) === ms)
}

/** Returns a time in UTC, with seconds only if it has some. */
export function toExactTime(ms: number): string {
  return new Date(ms).toISOString().replace(/(:00)?\.000Z$/, 'Z')
}

/** Replaces the values of `after:` and `before:` that `parse` knows. */
function replaceTimes(
  text: string,
  parse: (value: string) => number | undefined,
  write: (ms: number) => string,
): string {
  const replace = (all: string, { name, value, isExcluded, start, end }: SearchTerm) => {
    const ms = name === 'after' || name === 'before' ? parse(value) : undefined
    if (ms === undefined || write(ms) === value) return all
    return `${all.slice(0, start)}${isExcluded ? '-' : ''}${name}:${write(ms)}${all.slice(end)}`
  }
  // From the end, because offsets are those of the text before.
  return parseSearch(text).terms.reduceRight(replace, text)
}

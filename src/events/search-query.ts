import { parseIsoTimestamp } from './timestamp.ts'

// The language of the search box. Pure: the browser runs it, too.

const MAX_LENGTH = 500
const MAX_TERMS = 20
export const HAS_FIELDS = ['description', 'metadata', 'tags', 'user', 'icon'] as const
export type HasField = (typeof HAS_FIELDS)[number]

/** Values to include, and values to exclude. */
export interface ValueFilter<Value extends string = string> {
  is: Value[]
  not: Value[]
}

/**
 * The filters of a search. An event matches one of the channels, users and sources, and all of the tags, metadata, words,
 * phrases and `has`. It matches nothing that is excluded.
 */
export interface SearchFilters {
  /** Names in any spelling, or ids. */
  channels: ValueFilter
  /** Each a user_id or an alias. */
  users: ValueFilter
  sources: ValueFilter
  tags: ValueFilter
  /** `order.number=42`: a path in the metadata, and its value as text. */
  metadata: ValueFilter
  has: ValueFilter<HasField>
  /** Words by their beginnings. */
  words: ValueFilter
  /** Whole words in this order. */
  phrases: ValueFilter
  /** Inclusive; milliseconds since 1970. */
  after: number | null
  /** Exclusive; milliseconds since 1970. */
  before: number | null
}

/** One error in a search. `path` is the name of the term, and empty for the whole search. */
export interface SearchIssue {
  path: string[]
  code: 'too_long' | 'too_many' | 'invalid_format' | 'invalid_value'
  message: string
}

// A minus, a known name, and a value: in quotes, where \ escapes, or up to the next space.
const TERM =
  /\s*(-?)(?:(channel|user|source|tag|meta|has|before|after):)?(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|(\S+))/isuy
const LIST_TERMS = {
  channel: 'channels',
  user: 'users',
  source: 'sources',
  tag: 'tags',
  meta: 'metadata',
} as const

/** Filters that every event matches. */
export function noFilters(): SearchFilters {
  const none = () => ({ is: [], not: [] })
  return {
    ...{ channels: none(), users: none(), sources: none(), tags: none(), metadata: none() },
    ...{ has: none(), words: none(), phrases: none(), after: null, before: null },
  }
}

/**
 * Reads `channel:payments -tag:test user:"Ada L" meta:plan=pro has:icon before:2026-01-01 "exact words" word -word`.
 * A term without a known name is a word. Terms with an issue are left out.
 */
export function parseSearch(text: string): { filters: SearchFilters; issues: SearchIssue[] } {
  const filters = noFilters()
  const issues: SearchIssue[] = []
  if ([...text].length > MAX_LENGTH) {
    const message = `Must have at most ${MAX_LENGTH} characters`
    return { filters, issues: [{ path: [], code: 'too_long', message }] }
  }
  let count = 0
  TERM.lastIndex = 0
  for (let match = TERM.exec(text); match; match = TERM.exec(text)) {
    const [, minus, name = '', quoted, plain] = match
    const value = quoted === undefined ? plain : quoted.replace(/\\(.)/gsu, '$1')
    if (value === undefined || value.trim() === '') continue
    const term = { name: name.toLowerCase(), value, isQuoted: quoted !== undefined }
    const found = addTerm(filters, term, minus === '-' ? 'not' : 'is')
    if (found) issues.push(found)
    if (++count === MAX_TERMS + 1) {
      issues.push({ path: [], code: 'too_many', message: `Must have at most ${MAX_TERMS} terms` })
    }
  }
  return { filters, issues }
}

/** The text that `parseSearch` reads as these filters. */
export function toSearchText(filters: SearchFilters): string {
  const terms: string[] = []
  const add = (choice: ValueFilter, toTerm: (value: string) => string) => {
    for (const value of choice.is) terms.push(toTerm(value))
    for (const value of choice.not) terms.push(`-${toTerm(value)}`)
  }
  for (const [name, list] of Object.entries(LIST_TERMS)) {
    add(filters[list], value => `${name}:${toValue(value)}`)
  }
  add(filters.has, value => `has:${value}`)
  if (filters.after !== null) terms.push(`after:${toShortIso(filters.after)}`)
  if (filters.before !== null) terms.push(`before:${toShortIso(filters.before)}`)
  add(filters.phrases, quote)
  add(filters.words, value => value)
  return terms.join(' ')
}

/** The path in the metadata and the value that `path=value` names; undefined for other text. */
export function splitMetadata(text: string): { path: string[]; value: string } | undefined {
  const at = text.indexOf('=')
  return at < 1 ? undefined : { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
}

/** The words of v1's filter `text`, up to 20. White space alone is one word, which matches nothing. */
export function splitWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words.slice(0, 20) : [text]
}

/** A Postgres tsquery for texts with words that begin like `words`, and with the phrases, but without the excluded ones. */
export function toTextQuery(words: ValueFilter, phrases: ValueFilter): string {
  return [
    ...words.is.map(word => `${quoteTerm(word)}:*`),
    // Postgres, too, reads several words in quotes as a phrase.
    ...phrases.is.map(quoteTerm),
    ...words.not.map(word => `!${quoteTerm(word)}:*`),
    ...phrases.not.map(phrase => `!${quoteTerm(phrase)}`),
  ].join(' & ')
}

function quoteTerm(text: string): string {
  return `'${text.replace(/['\\]/g, '$&$&')}'`
}

interface Term {
  name: string
  value: string
  isQuoted: boolean
}

/** Adds a term to the filters, or returns its issue. */
function addTerm(
  filters: SearchFilters,
  { name, value, isQuoted }: Term,
  sign: keyof ValueFilter,
): SearchIssue | undefined {
  if (name === 'before' || name === 'after') {
    return addTimeBound(filters, name, value, (name === 'before') === (sign === 'is'))
  }
  if (name === 'has') {
    const known = HAS_FIELDS.find(one => one === value.toLowerCase())
    if (!known) {
      const message = `Must be one of ${HAS_FIELDS.join(', ')}`
      return { path: ['has'], code: 'invalid_value', message }
    }
    addOnce(filters.has[sign], known)
  } else if (name === 'meta' && !splitMetadata(value)) {
    const message = 'Must be a name and a value, like plan=pro or order.number=42'
    return { path: ['meta'], code: 'invalid_format', message }
  } else if (isListTerm(name)) addOnce(filters[LIST_TERMS[name]][sign], value)
  else addOnce((isQuoted ? filters.phrases : filters.words)[sign], value)
  return undefined
}

function isListTerm(name: string): name is keyof typeof LIST_TERMS {
  return Object.hasOwn(LIST_TERMS, name)
}

/** Narrows the range: the narrowest of several bounds holds. */
function addTimeBound(
  filters: SearchFilters,
  name: string,
  value: string,
  isBefore: boolean,
): SearchIssue | undefined {
  const moment = parseIsoTimestamp(value)
  if (moment === undefined) {
    const message = 'Must be a date, or ISO 8601 with a time zone, like 2026-11-20T09:30Z'
    return { path: [name], code: 'invalid_format', message }
  }
  if (isBefore) filters.before = Math.min(moment, filters.before ?? Infinity)
  else filters.after = Math.max(moment, filters.after ?? -Infinity)
  return undefined
}

function addOnce<Value>(values: Value[], value: Value): void {
  if (!values.includes(value)) values.push(value)
}

function toValue(value: string): string {
  return value.startsWith('"') || /\s/u.test(value) ? quote(value) : value
}

function quote(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}

/** The shortest spelling of a moment in UTC. */
function toShortIso(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace('T00:00:00.000Z', '')
    .replace(/:00\.000Z$/, 'Z')
    .replace('.000Z', 'Z')
}

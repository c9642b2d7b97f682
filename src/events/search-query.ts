import { parseIsoTimestamp } from './timestamp.ts'

// The query language of the search box. Pure: it also runs in the browser.

const MAX_LENGTH = 500
const MAX_TERMS = 20
export const HAS_FIELDS = ['description', 'metadata', 'tags', 'user', 'icon'] as const
export type HasField = (typeof HAS_FIELDS)[number]

/** The values to include, and those to exclude. */
export interface ValueFilter<Value extends string = string> {
  is: Value[]
  not: Value[]
}

/**
 * The filters of a search. An event must match one of the channels, one of the users and one of the
 * sources, and all of the tags, metadata, words, phrases and `has`. It must match no excluded
 * value.
 */
export interface SearchFilters {
  /** Names (in any case) or ids. */
  channels: ValueFilter
  /** Each is a user_id or an alias. */
  users: ValueFilter
  sources: ValueFilter
  tags: ValueFilter
  /** Each is a path in the metadata and a value as text, like `order.number=42`. */
  metadata: ValueFilter
  has: ValueFilter<HasField>
  /** Prefixes of words. */
  words: ValueFilter
  /** Each is a sequence of whole words. */
  phrases: ValueFilter
  /** Inclusive; milliseconds since 1970. */
  after: number | null
  /** Exclusive; milliseconds since 1970. */
  before: number | null
}

/** An error in a search. `path` has the name of the term, and is empty for the whole search. */
export interface SearchIssue {
  path: string[]
  code: 'too_long' | 'too_many' | 'invalid_format' | 'invalid_value'
  message: string
}

// A minus, a known name, and a value. The value is in quotes, with \ as the escape, or ends at a
// space.
const TERM =
  /\s*(-?)(?:(channel|user|source|tag|meta|has|before|after):)?(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|(\S+))/isuy
const LIST_TERMS = {
  channel: 'channels',
  user: 'users',
  source: 'sources',
  tag: 'tags',
  meta: 'metadata',
} as const

/** Returns filters that every event matches. */
export function noFilters(): SearchFilters {
  const none = () => ({ is: [], not: [] })
  return {
    ...{ channels: none(), users: none(), sources: none(), tags: none(), metadata: none() },
    ...{ has: none(), words: none(), phrases: none(), after: null, before: null },
  }
}

/**
 * Parses a search like `channel:payments -tag:test user:"Ada L" meta:plan=pro has:icon
 * before:2026-01-01 "exact words" word -word`. A term without a known name is a word. Terms with an
 * issue are left out of the filters.
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

/**
 * Returns whether filters can examine many more events than they match. The log and the indexes of
 * channels and users serve the others.
 */
export function isSearch({
  sources,
  tags,
  metadata,
  has,
  words,
  phrases,
  ...rest
}: SearchFilters): boolean {
  const values = [sources, tags, metadata, has, words, phrases].flatMap(({ is, not }) => [is, not])
  return [...values, rest.channels.not, rest.users.not].some(list => list.length > 0)
}

/** Returns a search that `parseSearch` parses to these filters. */
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

/**
 * Splits `path=value` at its first `=`, and the path at each dot. Returns undefined without a path.
 */
export function splitMetadata(text: string): { path: string[]; value: string } | undefined {
  const at = text.indexOf('=')
  return at < 1 ? undefined : { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
}

/**
 * Splits the filter `text` of /v1 into up to 20 words. White space alone is one word, which matches
 * nothing.
 */
export function splitWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words.slice(0, 20) : [text]
}

/** Returns a Postgres tsquery. Words match by their prefix, and phrases match whole words. */
export function toTextQuery(words: ValueFilter, phrases: ValueFilter): string {
  return [
    ...words.is.map(word => `${quoteTerm(word)}:*`),
    // Postgres also reads several words in quotes as a phrase.
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

/** Narrows the time range. Of several bounds, the narrowest applies. */
function addTimeBound(
  filters: SearchFilters,
  name: string,
  value: string,
  isBefore: boolean,
): SearchIssue | undefined {
  const ms = parseIsoTimestamp(value)
  if (ms === undefined) {
    const message = 'Must be a date, or ISO 8601 with a time zone, like 2026-11-20T09:30Z'
    return { path: [name], code: 'invalid_format', message }
  }
  if (isBefore) filters.before = Math.min(ms, filters.before ?? Infinity)
  else filters.after = Math.max(ms, filters.after ?? -Infinity)
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

/** Returns the shortest ISO 8601 text of a time, in UTC. */
function toShortIso(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace('T00:00:00.000Z', '')
    .replace(/:00\.000Z$/, 'Z')
    .replace('.000Z', 'Z')
}

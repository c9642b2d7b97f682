import { parseTimestamp } from './moment.ts'

// What people write into the search box. Pure: the browser runs it, too.

const MAX_LENGTH = 500
const MAX_TERMS = 20
export const HAS = ['description', 'metadata', 'tags', 'user', 'icon'] as const
export type Has = (typeof HAS)[number]

/** Values that are asked for, and values that are shut out. */
export interface Choice<Value extends string = string> {
  is: Value[]
  not: Value[]
}

/**
 * Which events are wanted. Of several channels, users or sources an event has one; of tags, metadata, words, phrases
 * and `has` it has all; and none of what is shut out.
 */
export interface Filters {
  /** Names in any spelling, or ids. */
  channels: Choice
  /** A user_id or an alias each. */
  users: Choice
  sources: Choice
  tags: Choice
  /** `order.number=42`: what is at a place in the metadata, as text. */
  metadata: Choice
  has: Choice<Has>
  /** Beginnings of words. */
  words: Choice
  /** Whole words in their order. */
  phrases: Choice
  /** Milliseconds since 1970: at this moment or later. */
  after: number | null
  /** Milliseconds since 1970: earlier than this moment. */
  before: number | null
}

/** One thing wrong with a search; `path` leads to the term by its name, and is empty for the whole. */
export interface SearchIssue {
  path: string[]
  code: 'too_long' | 'too_many' | 'invalid_format' | 'invalid_value'
  message: string
}

// A minus, a name that we know, and a value: in quotes (where \ escapes), or up to the next space.
const TERM =
  /\s*(-?)(?:(channel|user|source|tag|meta|has|before|after):)?(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|(\S+))/isuy
const NAMES = {
  channel: 'channels',
  user: 'users',
  source: 'sources',
  tag: 'tags',
  meta: 'metadata',
} as const

/** Filters that every event passes. */
export function noFilters(): Filters {
  return {
    channels: { is: [], not: [] },
    users: { is: [], not: [] },
    sources: { is: [], not: [] },
    tags: { is: [], not: [] },
    metadata: { is: [], not: [] },
    has: { is: [], not: [] },
    words: { is: [], not: [] },
    phrases: { is: [], not: [] },
    after: null,
    before: null,
  }
}

/**
 * Reads `channel:payments -tag:test user:"Ada L" meta:plan=pro has:icon before:2026-01-01 "exact words" word -word`.
 * What has no name that we know is a word. Terms with an issue are left out.
 */
export function parseSearch(text: string): { filters: Filters; issues: SearchIssue[] } {
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
    const found = take(filters, term, minus === '-' ? 'not' : 'is')
    if (found) issues.push(found)
    if (++count === MAX_TERMS + 1) {
      issues.push({ path: [], code: 'too_many', message: `Must have at most ${MAX_TERMS} terms` })
    }
  }
  return { filters, issues }
}

/** The text that `parseSearch` reads as these filters. */
export function toSearchText(filters: Filters): string {
  const terms: string[] = []
  const add = (choice: Choice, toTerm: (value: string) => string) => {
    for (const value of choice.is) terms.push(toTerm(value))
    for (const value of choice.not) terms.push(`-${toTerm(value)}`)
  }
  for (const [name, list] of Object.entries(NAMES)) {
    add(filters[list], value => `${name}:${toValue(value)}`)
  }
  add(filters.has, value => `has:${value}`)
  if (filters.after !== null) terms.push(`after:${toMoment(filters.after)}`)
  if (filters.before !== null) terms.push(`before:${toMoment(filters.before)}`)
  add(filters.phrases, quote)
  add(filters.words, value => value)
  return terms.join(' ')
}

/** The names that lead to a value in the metadata, and the value as text; undefined where that is not what it says. */
export function splitMetadata(text: string): { path: string[]; value: string } | undefined {
  const at = text.indexOf('=')
  return at < 1 ? undefined : { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
}

interface Term {
  name: string
  value: string
  isQuoted: boolean
}

/** Puts a term where it belongs; returns what is wrong with it. */
function take(
  filters: Filters,
  { name, value, isQuoted }: Term,
  sign: keyof Choice,
): SearchIssue | undefined {
  if (name === 'before' || name === 'after') {
    return takeMoment(filters, name, value, (name === 'before') === (sign === 'is'))
  }
  if (name === 'has') {
    const known = HAS.find(one => one === value.toLowerCase())
    if (!known) {
      const message = `Must be one of ${HAS.join(', ')}`
      return { path: ['has'], code: 'invalid_value', message }
    }
    addOnce(filters.has[sign], known)
  } else if (name === 'meta' && !splitMetadata(value)) {
    const message = 'Must be a name and a value, like plan=pro or order.number=42'
    return { path: ['meta'], code: 'invalid_format', message }
  } else if (isOneOf(name)) addOnce(filters[NAMES[name]][sign], value)
  else addOnce((isQuoted ? filters.phrases : filters.words)[sign], value)
  return undefined
}

function isOneOf(name: string): name is keyof typeof NAMES {
  return Object.hasOwn(NAMES, name)
}

/** The narrowest of several bounds holds. */
function takeMoment(
  filters: Filters,
  name: string,
  value: string,
  isBefore: boolean,
): SearchIssue | undefined {
  const moment = parseTimestamp(value)
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
function toMoment(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace('T00:00:00.000Z', '')
    .replace(/:00\.000Z$/, 'Z')
    .replace('.000Z', 'Z')
}

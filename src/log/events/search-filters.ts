import type { Level } from '../channels/level.ts'
import type { State } from './state.ts'

// The filters of a search. Pure: it also runs in the browser.

export const HAS_FIELDS = ['description', 'metadata', 'tags', 'user', 'icon'] as const
export type HasField = (typeof HAS_FIELDS)[number]

/** The values to include, and those to exclude. */
export interface ValueFilter<Value extends string = string> {
  is: Value[]
  not: Value[]
}

/**
 * The filters of a search. An event must match one of the channels, one of the users, one of the
 * sources, one of the levels, one of the states and one of the threads, and all of the tags,
 * metadata, words, phrases, `has` and groups. It must match no excluded value.
 */
export interface SearchFilters {
  /** Names (in any case) or ids. */
  channels: ValueFilter
  /**
   * Each is the beginning of a name, or with white space a whole name, or in quotes a user_id or an
   * alias: see `toExactUser`.
   */
  users: ValueFilter
  sources: ValueFilter
  levels: ValueFilter<Level>
  states: ValueFilter<State>
  /** The keys of threads. */
  threads: ValueFilter
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
  groups: FilterGroup[]
}

/** Alternatives: an event must match at least one of the filters; none of them if excluded. */
export interface FilterGroup {
  isExcluded: boolean
  filters: SearchFilters[]
}

/** The fields of filters that are lists of values, and how each value begins in a search. */
export const TERMS = {
  channels: 'channel:',
  users: 'user:',
  sources: 'source:',
  levels: 'level:',
  states: 'state:',
  threads: 'thread:',
  tags: 'tag:',
  metadata: 'meta:',
  has: 'has:',
  phrases: '',
  words: '',
} as const
type ValueList = keyof typeof TERMS
export const VALUE_LISTS = Object.keys(TERMS) as ValueList[]
/** The lists of which an event must match one value. An event matches all values of the others. */
const ONE_OF_LISTS = VALUE_LISTS.slice(0, 6)

/** Returns filters that every event matches. */
export function noFilters(): SearchFilters {
  const lists = Object.fromEntries(VALUE_LISTS.map(name => [name, { is: [], not: [] }]))
  const none = lists as Record<ValueList, ValueFilter<never>>
  return { ...none, after: null, before: null, groups: [] }
}

/** Returns whether filters have values of these lists at most, and no groups. */
export function hasOnly(filters: SearchFilters, lists: readonly ValueList[]): boolean {
  const isEmpty = ({ is, not }: ValueFilter) => is.length + not.length === 0
  return (
    filters.groups.length === 0 &&
    VALUE_LISTS.every(name => lists.includes(name) || isEmpty(filters[name]))
  )
}

/**
 * Returns whether filters can examine many more events than they match. The log and the indexes of
 * channels and users serve the others.
 */
export function isSearch(filters: SearchFilters): boolean {
  const { channels, users } = filters
  const names = users.is.filter(user => readExactUser(user) === undefined)
  return (
    !hasOnly(filters, ['channels', 'users']) ||
    [channels.not, users.not, names].some(list => list.length > 0)
  )
}

/**
 * Returns whether a list has only the latest event of each thread. A search for anything else finds
 * each event, as histograms count them.
 */
export function hasLatestOnly(filters: SearchFilters): boolean {
  return (
    hasOnly(filters, ['channels', 'levels', 'states', 'threads']) &&
    filters.after === null &&
    filters.before === null
  )
}

/** Returns the filter value for the user with this user_id or alias. */
export function toExactUser(reference: string): string {
  return `"${reference}"`
}

/** Returns the user_id or alias of a filter value; undefined for a beginning and a whole name. */
export function readExactUser(user: string): string | undefined {
  // The text of a beginning has no quote at its start, because that starts a text in quotes.
  return user.startsWith('"') ? user.slice(1, -1) : undefined
}

/**
 * Returns the filter value for a user in quotes: a whole name if it has several words, such as
 * `Ada Lovelace`, else a user_id or an alias.
 */
export function toQuotedUser(text: string): string {
  return /\S\s+\S/u.test(text) && !text.startsWith('"') ? text : toExactUser(text)
}

/** Returns whether a filter value is a whole name. A beginning has no white space. */
export function isWholeName(user: string): boolean {
  return readExactUser(user) === undefined && /\s/u.test(user)
}

/**
 * Splits `path=value` at its first `=`, and the path at each dot. Returns undefined without a path.
 */
export function splitMetadata(text: string): { path: string[]; value: string } | undefined {
  const at = text.indexOf('=')
  return at < 1 ? undefined : { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
}

/** Up to this many dots of a path can be parts of names, each by itself. */
const MAX_DOTS = 2

/**
 * Lists the paths that a path split at each dot can mean, because names can have dots: `a.b` is `b`
 * in `a`, or `a.b`.
 */
export function listPaths(path: readonly string[]): string[][] {
  const [first = '', ...rest] = path
  if (path.length > MAX_DOTS + 1) return [[...path], [path.join('.')]]
  return rest.reduce(
    (paths, name) =>
      paths.flatMap(one => [
        [...one, name],
        [...one.slice(0, -1), `${one.at(-1)}.${name}`],
      ]),
    [[first]],
  )
}

/**
 * Adds a group to filters whose terms are complete. If its alternatives are all channels, all
 * users, all sources or all levels, they become values of that list, which has an index or exact
 * counts.
 */
export function addGroup(filters: SearchFilters, group: FilterGroup): void {
  const sign = group.isExcluded ? 'not' : 'is'
  const list = ONE_OF_LISTS.find(
    name =>
      (group.isExcluded || filters[name].is.length === 0) &&
      group.filters.every(one => isOnlyValues(one, name)),
  )
  if (!list) return void filters.groups.push(group)
  const values: string[] = group.filters.flatMap(one => one[list].is)
  const own: string[] = filters[list][sign]
  for (const value of values) addOnce(own, value)
}

/** Returns true if filters have included values of one list, and nothing else. */
function isOnlyValues(filters: SearchFilters, list: ValueList): boolean {
  const { is } = filters[list]
  const same = { ...noFilters(), [list]: { is, not: [] } }
  return is.length > 0 && JSON.stringify(filters) === JSON.stringify(same)
}

export function addOnce<Value>(values: Value[], value: Value): void {
  if (!values.includes(value)) values.push(value)
}

/** Narrows the time range. Of several bounds, the narrowest applies. */
export function addBound(
  filters: SearchFilters,
  bound: 'after' | 'before',
  ms: number | null,
): void {
  if (ms === null) return
  const narrower = bound === 'after' ? Math.max : Math.min
  filters[bound] = narrower(ms, filters[bound] ?? ms)
}

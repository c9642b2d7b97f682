// The filters of a search. Pure: it also runs in the browser.

export const HAS_FIELDS = ['description', 'metadata', 'tags', 'user', 'icon'] as const
export type HasField = (typeof HAS_FIELDS)[number]

/** The values to include, and those to exclude. */
export interface ValueFilter<Value extends string = string> {
  is: Value[]
  not: Value[]
}

/**
 * The filters of a search. An event must match one of the channels, one of the users and one of the
 * sources, and all of the tags, metadata, words, phrases, `has` and groups. It must match no
 * excluded value.
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

/** The fields of filters that are lists of values. */
export const VALUE_LISTS = [
  'channels',
  'users',
  'sources',
  'tags',
  'metadata',
  'has',
  'phrases',
  'words',
] as const
/** The lists of which an event must match one value. An event matches all values of the others. */
const ONE_OF_LISTS = ['channels', 'users', 'sources'] as const

/** Returns filters that every event matches. */
export function noFilters(): SearchFilters {
  const none = () => ({ is: [], not: [] })
  return {
    ...{ channels: none(), users: none(), sources: none(), tags: none(), metadata: none() },
    ...{ has: none(), words: none(), phrases: none() },
    ...{ after: null, before: null, groups: [] },
  }
}

/**
 * Returns whether filters can examine many more events than they match. The log and the indexes of
 * channels and users serve the others.
 */
export function isSearch(filters: SearchFilters): boolean {
  const { sources, tags, metadata, has, words, phrases, channels, users, groups } = filters
  const names = users.is.filter(user => readExactUser(user) === undefined)
  const values = [sources, tags, metadata, has, words, phrases].flatMap(({ is, not }) => [is, not])
  return [...values, channels.not, users.not, names, groups].some(list => list.length > 0)
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
 * Adds groups to filters, in the simplest form with the same meaning: `(channel:a OR channel:b)`
 * becomes two channels, and `-(tag:a OR tag:b)` two excluded tags.
 */
export function addGroups(filters: SearchFilters, groups: readonly FilterGroup[]): void {
  const waiting = [...groups]
  for (let group = waiting.shift(); group; group = waiting.shift()) {
    const flat = { ...group, filters: group.filters.flatMap(toAlternatives) }
    const isDone = flat.isExcluded
      ? addExcluded(filters, flat.filters)
      : addOneOf(filters, flat.filters)
    if (isDone) continue
    const [only] = flat.filters
    if (!flat.isExcluded && flat.filters.length === 1 && only && canMerge(filters, only)) {
      merge(filters, only)
      waiting.unshift(...only.groups)
    } else filters.groups.push(flat)
  }
}

export function addOnce<Value>(values: Value[], value: Value): void {
  if (!values.includes(value)) values.push(value)
}

/** Returns the alternatives of filters that are nothing else; otherwise the filters themselves. */
function toAlternatives(filters: SearchFilters): SearchFilters[] {
  const [group] = filters.groups
  const isOnly = filters.groups.length === 1 && countConditions(filters) === 1
  return isOnly && group && !group.isExcluded ? group.filters : [filters]
}

function countConditions(filters: SearchFilters): number {
  const values = VALUE_LISTS.map(list => filters[list].is.length + filters[list].not.length)
  const bounds = [filters.after, filters.before].filter(bound => bound !== null)
  return values.reduce((sum, count) => sum + count, bounds.length + filters.groups.length)
}

/** Excludes each alternative by itself. Returns false if one has several conditions. */
function addExcluded(filters: SearchFilters, alternatives: readonly SearchFilters[]): boolean {
  const lists = alternatives.map(one => VALUE_LISTS.find(list => isOnlyValues(one, list)))
  const isSimple = alternatives.every((one, n) => {
    const list = lists[n]
    return list !== undefined && (isOneOf(list) || one[list].is.length === 1)
  })
  if (!isSimple) return false
  for (const [n, one] of alternatives.entries()) {
    const list = lists[n]
    if (list) for (const value of one[list].is) addOnce<string>(filters[list].not, value)
  }
  return true
}

/** Adds alternatives that are all channels, all users or all sources. */
function addOneOf(filters: SearchFilters, alternatives: readonly SearchFilters[]): boolean {
  const list = ONE_OF_LISTS.find(
    name => filters[name].is.length === 0 && alternatives.every(one => isOnlyValues(one, name)),
  )
  if (!list) return false
  for (const one of alternatives) {
    for (const value of one[list].is) addOnce(filters[list].is, value)
  }
  return true
}

/** Returns true if filters have included values of one list, and nothing else. */
function isOnlyValues(filters: SearchFilters, list: (typeof VALUE_LISTS)[number]): boolean {
  const count = filters[list].is.length
  return count > 0 && countConditions(filters) === count
}

function isOneOf(list: string): boolean {
  return ONE_OF_LISTS.some(name => name === list)
}

/** Returns true unless values would become alternatives of each other. */
function canMerge(filters: SearchFilters, other: SearchFilters): boolean {
  return ONE_OF_LISTS.every(list => filters[list].is.length === 0 || other[list].is.length === 0)
}

/** Adds the conditions of `other`, except its groups. */
function merge(filters: SearchFilters, other: SearchFilters): void {
  for (const list of VALUE_LISTS) {
    for (const sign of ['is', 'not'] as const) {
      for (const value of other[list][sign]) addOnce<string>(filters[list][sign], value)
    }
  }
  addBound(filters, 'after', other.after)
  addBound(filters, 'before', other.before)
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

import type { Queryable } from '../../database/sql.ts'
import { toSlug } from '../channels/name.ts'
import { matchesMetadata } from '../events/metadata-values.ts'
import type { Event } from '../events/schema.ts'
import {
  noFilters,
  readExactUser,
  type HasField,
  type SearchFilters,
  type ValueFilter,
} from '../events/search-filters.ts'
import { readTextPatterns } from '../events/resolved-filters.ts'

/** The fields of an event that `matches` compares. */
export interface FilterFields {
  /** The id of the channel, and the slugs that name it. */
  channelNames: readonly string[]
  tags: readonly string[]
  source: string
  /** The values of filters that name the event's user. */
  users: readonly string[]
  /** The text that has the patterns, if a filter needs it. */
  searchText: string
  /** The whole event. */
  event(): Pick<
    Event,
    | ('description' | 'icon' | 'level' | 'metadata' | 'state' | 'tags')
    | ('thread' | 'timestamp' | 'userId')
  >
}

/** No event is one of no alternatives. */
const NEVER = { isExcluded: false, filters: [] }

/**
 * Prepares the filters of a search for `matches`: channels get their slugs, and words become
 * patterns of `search_text`.
 */
export async function prepareFilters(
  sql: Queryable,
  filters: SearchFilters,
): Promise<SearchFilters> {
  const { channels, words, phrases, groups } = filters
  const toNames = (names: string[]) => names.flatMap(name => [...new Set([name, toSlug(name)])])
  const toPatterns = async (sign: 'is' | 'not') =>
    (await readTextPatterns(sql, words[sign], phrases[sign])).map(({ pattern }) => pattern)
  const patterns = { is: await toPatterns('is'), not: await toPatterns('not') }
  // A text without anything to find matches nothing, as in lists.
  const hasNothing = words.is.length + phrases.is.length > 0 && patterns.is.length === 0
  const prepared: SearchFilters = {
    ...filters,
    channels: { is: toNames(channels.is), not: toNames(channels.not) },
    words: patterns,
    phrases: noFilters().phrases,
    groups: hasNothing ? [NEVER] : [],
  }
  for (const { isExcluded, filters: alternatives } of groups) {
    const all: SearchFilters[] = []
    for (const one of alternatives) all.push(await prepareFilters(sql, one))
    prepared.groups.push({ isExcluded, filters: all })
  }
  return prepared
}

/** The data of events that filters compare, beside the fields of the event itself. */
export interface FilterNeeds {
  /** The values of filters for users. */
  users: string[]
  wantsText: boolean
}

/** Returns the needs of prepared filters. */
export function toNeeds(filters: readonly SearchFilters[]): FilterNeeds {
  const all = filters.flatMap(listFilters)
  return {
    users: [...new Set(all.flatMap(({ users }) => [...users.is, ...users.not]))],
    wantsText: all.some(({ words }) => words.is.length + words.not.length > 0),
  }
}

/** Returns whether filters have names of users or their beginnings, which take long to compare. */
export function hasUserNames(filters: SearchFilters): boolean {
  return toNeeds([filters]).users.some(user => readExactUser(user) === undefined)
}

/** Lists filters with all their alternatives. */
function listFilters(filters: SearchFilters): SearchFilters[] {
  return [filters, ...filters.groups.flatMap(group => group.filters.flatMap(listFilters))]
}

/** Returns true if an event matches prepared filters. */
export function matches(filters: SearchFilters, fields: FilterFields): boolean {
  const { channels, users, sources, levels, states, threads, tags } = filters
  const { metadata, has, words, groups, after, before } = filters
  return (
    hasOne(channels, name => fields.channelNames.includes(name)) &&
    hasOne(sources, source => fields.source === source) &&
    hasOne(users, user => fields.users.includes(user)) &&
    hasOne(levels, level => (fields.event().level ?? 'normal') === level) &&
    hasOne(states, state => fields.event().state === state) &&
    hasOne(threads, key => fields.event().thread === key) &&
    hasAll(tags, tag => fields.tags.includes(tag)) &&
    hasAll(words, pattern => fields.searchText.includes(pattern)) &&
    hasAll(has, field => HAS_CHECKS[field](fields.event())) &&
    hasAll(metadata, one => matchesMetadata(fields.event(), one)) &&
    (after === null || Date.parse(fields.event().timestamp) >= after) &&
    (before === null || Date.parse(fields.event().timestamp) < before) &&
    groups.every(group => group.filters.some(one => matches(one, fields)) !== group.isExcluded)
  )
}

function hasOne({ is, not }: ValueFilter, test: (value: string) => boolean): boolean {
  return (is.length === 0 || is.some(test)) && !not.some(test)
}

function hasAll<Value extends string>(
  { is, not }: ValueFilter<Value>,
  test: (value: Value) => boolean,
): boolean {
  return is.every(test) && !not.some(test)
}

const HAS_CHECKS: Record<HasField, (event: ReturnType<FilterFields['event']>) => boolean> = {
  description: ({ description }) => description !== null && description !== '',
  metadata: ({ metadata }) => Object.keys(metadata).length > 0,
  tags: ({ tags }) => tags.length > 0,
  user: ({ userId }) => userId !== null,
  icon: ({ icon }) => icon !== null,
}

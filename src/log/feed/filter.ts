import { toSlug } from '../channels/name.ts'
import type { FeedFilters } from './schema.ts'

/** The fields of an event that filters compare. */
export interface FilterFields {
  /** The id of the channel, and the slugs that name it. */
  channelNames: readonly string[]
  tags: readonly string[]
  source: string
  /** The user_ids and aliases from filters that name the event's user. */
  userNames: readonly string[]
  /** The text that has the patterns. Empty when no filter of the project has a text. */
  searchText: string
}

/** A client's filters, prepared for `matches`. Undefined matches every event. */
export interface CompiledFilter {
  /** Equal for equal filters; empty for a filter that matches every event. */
  key: string
  channels: ReadonlySet<string> | undefined
  tags: readonly string[] | undefined
  userId: string | undefined
  source: string | undefined
  patterns: readonly string[] | undefined
  any: readonly CompiledFilter[] | undefined
}

/** Lists the texts in a client's filters. */
export function listTexts({ text, any = [] }: FeedFilters = {}): string[] {
  return [...(text === undefined ? [] : [text]), ...any.flatMap(listTexts)]
}

/** Compiles a client's filters. `patterns` are those of each of their texts. */
export function compileFilter(
  { channels, tags, userId, source, text, any }: FeedFilters,
  patterns: ReadonlyMap<string, readonly string[]>,
): CompiledFilter {
  const names = channels && distinct(channels.flatMap(name => [name, toSlug(name)]))
  const allTags = tags && distinct(tags)
  const words = text === undefined ? undefined : (patterns.get(text) ?? [])
  const alternatives = any?.map(one => compileFilter(one, patterns))
  const parts = [names, allTags, userId, source, words, alternatives?.map(({ key }) => key)]
  return {
    key: parts.every(part => part === undefined) ? '' : JSON.stringify(parts),
    channels: names && new Set(names),
    tags: allTags,
    userId,
    source,
    patterns: words,
    any: alternatives,
  }
}

/** The data of events that filters compare, beside the fields of the event itself. */
export interface FilterNeeds {
  /** The user_ids and aliases in filters. */
  userNames: string[]
  wantsText: boolean
}

/** Returns the needs of several filters and their alternatives. */
export function toNeeds(filters: readonly CompiledFilter[]): FilterNeeds {
  const all = filters.flatMap(filter => [filter, ...(filter.any ?? [])])
  return {
    userNames: [...new Set(all.flatMap(({ userId }) => userId ?? []))],
    wantsText: all.some(({ patterns }) => patterns !== undefined),
  }
}

/** Returns true if an event matches every part of a filter. */
export function matches(filter: CompiledFilter, fields: FilterFields): boolean {
  const { channels, tags, userId, source, patterns, any } = filter
  if (filter.key === '') return true
  if (channels && !fields.channelNames.some(name => channels.has(name))) return false
  if (source !== undefined && fields.source !== source) return false
  if (tags && !tags.every(tag => fields.tags.includes(tag))) return false
  if (userId !== undefined && !fields.userNames.includes(userId)) return false
  if (any && !any.some(one => matches(one, fields))) return false
  // A text without anything to find matches nothing, as in lists.
  return (
    !patterns || (patterns.length > 0 && patterns.every(one => fields.searchText.includes(one)))
  )
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort()
}

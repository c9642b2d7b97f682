import { toSlug } from '../channels/name.ts'
import type { Filters } from './schema.ts'

/** The fields of an event that filters test. */
export interface Facts {
  channelId: string
  channelSlug: string
  tags: readonly string[]
  source: string
  /** The names in filters that belong to the event's user. */
  userNames: readonly string[]
  /** The sorted lexemes of title and description; empty where no filter has a text. */
  words: readonly string[]
}

export interface Filter {
  /** Equal for filters that match the same events. */
  key: string
  channels: ReadonlySet<string> | undefined
  tags: readonly string[] | undefined
  userId: string | undefined
  source: string | undefined
  words: readonly string[] | undefined
}

/** Makes the filter of a client; `words` are the lexemes of its text. */
export function toFilter(
  { channels, tags, userId, source }: Filters,
  words: readonly string[] | undefined,
): Filter {
  const names = channels && distinct(channels.flatMap(name => [name, toSlug(name)]))
  const allTags = tags && distinct(tags)
  const isOpen = !names && !allTags && userId === undefined && source === undefined && !words
  return {
    key: isOpen ? '' : JSON.stringify([names, allTags, userId, source, words]),
    channels: names && new Set(names),
    tags: allTags,
    userId,
    source,
    words,
  }
}

export function matches(filter: Filter, facts: Facts): boolean {
  const { channels, tags, userId, source, words } = filter
  if (filter.key === '') return true
  if (channels && !channels.has(facts.channelId) && !channels.has(facts.channelSlug)) return false
  if (source !== undefined && facts.source !== source) return false
  if (tags && !tags.every(tag => facts.tags.includes(tag))) return false
  if (userId !== undefined && !facts.userNames.includes(userId)) return false
  // A text without a word matches nothing, as in lists.
  return !words || (words.length > 0 && words.every(word => hasPrefix(facts.words, word)))
}

/** Whether a word begins with `prefix`; `words` are sorted. */
function hasPrefix(words: readonly string[], prefix: string): boolean {
  let low = 0
  let high = words.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((words[middle] ?? '') < prefix) low = middle + 1
    else high = middle
  }
  return words[low]?.startsWith(prefix) ?? false
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort()
}

import { parseIsoTimestamp } from '../../../log/events/timestamp.ts'
import {
  addBound,
  noFilters,
  toQuotedUser,
  type SearchFilters,
} from '../../../log/events/search-filters.ts'
import {
  parseSearch,
  type ParsedSearch,
  type SearchPart,
} from '../../../log/events/search-query.ts'
import { toSearchText } from '../../../log/events/search-writer.ts'
import { toEventPath, toFeedPath } from '../paths.ts'

/** The channel, search text and time range in the URL of the feed. */
export interface Search {
  /** The channel chosen in the sidebar. Ignored if the text names channels. */
  channelId: string | undefined
  /** The search text as typed. */
  text: string
  /** A timestamp, or a name in `TIME_RANGES`. */
  from: string | undefined
  to: string | undefined
}

const HOUR_MS = 3_600_000
/** Time ranges that end now, in hours. */
export const TIME_RANGES: Readonly<Record<string, number>> = {
  '1h': 1,
  '24h': 24,
  '7d': 168,
  '30d': 720,
}
/** The names of filters by a whole value, and the lists of their values. */
export const LISTS = {
  channel: 'channels',
  tag: 'tags',
  user: 'users',
  source: 'sources',
  thread: 'threads',
  meta: 'metadata',
} as const

/** A range that ends now is asked for again after this part of it, as one bar of a histogram. */
const EVERY_PARTS = 60
const MIN_EVERY_MS = 60_000

export const EMPTY_SEARCH: Search = {
  channelId: undefined,
  text: '',
  from: undefined,
  to: undefined,
}

/** Reads a search from the URL query. Invalid timestamps are left out. */
export function readSearch(query: Readonly<Record<string, string>>): Search {
  const { channel, q = '', from, to } = query
  const text = q.trim()
  return {
    channelId: channel && !namesChannels(text) ? channel : undefined,
    text,
    from: from !== undefined && (toHours(from) !== undefined || isMoment(from)) ? from : undefined,
    to: to !== undefined && isMoment(to) ? to : undefined,
  }
}

/** The path of a search, or of an event that is open next to it. */
export function toSearchPath(project: string, search: Search, event?: string): string {
  const path = event === undefined ? toFeedPath(project) : toEventPath(project, event)
  return path + toUrlQuery(search)
}

/** The query of a URL, with its question mark; empty for no search. */
function toUrlQuery({ channelId, text, from, to }: Search): string {
  const channel = namesChannels(text) ? undefined : channelId
  const query = Object.entries({ channel, q: text, from, to }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  return query.length > 0 ? `?${new URLSearchParams(query)}` : ''
}

/** Returns whether a search filters by more than a channel. */
export function isFiltered({ text, from, to }: Search): boolean {
  return text !== '' || from !== undefined || to !== undefined
}

/**
 * The query for the server; `nowMs` is the end of a named time range. Invalid terms are left out.
 */
export function toQuery(search: Search, nowMs: number): Record<string, string> {
  const { text, channelId, from, to } = search
  const { filters, issues, isAlternative } = parseSearch(text, nowMs)
  const isRewritten = issues.length > 0 || (isAlternative && channelId !== undefined)
  const q = isRewritten
    ? toSearchText(withChannel(filters, channelId))
    : [channelId === undefined ? '' : `channel:${channelId}`, text].filter(Boolean).join(' ')
  return {
    ...(q && { q }),
    ...(from !== undefined && { from: toMoment(from, nowMs) }),
    ...(to !== undefined && { to }),
  }
}

/** Parses a search. Its channel and time range belong to the filters. */
export function parse(search: Search, nowMs: number): ParsedSearch {
  const { text, channelId, from, to } = search
  const parsed = parseSearch(text, nowMs)
  const filters = withChannel(parsed.filters, channelId)
  addBound(filters, 'after', parseMoment(from, nowMs))
  addBound(filters, 'before', parseMoment(to, nowMs))
  return { ...parsed, filters }
}

/** How often a search is asked again whose times depend on now; undefined for any other one. */
export function toEveryMs(search: Search, nowMs: number): number | undefined {
  const { filters } = parse(search, nowMs)
  if (JSON.stringify(filters) === JSON.stringify(parse(search, nowMs + 1).filters)) return undefined
  return Math.max((nowMs - (filters.after ?? nowMs)) / EVERY_PARTS, MIN_EVERY_MS)
}

/** The search text without one of its parts. */
export function withoutPart(text: string, { start, end }: SearchPart): string {
  return [text.slice(0, start).trim(), text.slice(end).trim()].filter(Boolean).join(' ')
}

/** The same search in another channel. Channels in its text are removed. */
export function toChannel(search: Search, channelId: string | undefined): Search {
  const { filters, parts, isAlternative } = parseSearch(search.text)
  const { channels } = filters
  const named = parts.filter(({ term }) => term?.name === 'channel' && !term.isExcluded)
  if (channels.is.length === 0) return { ...search, channelId }
  // Alternatives can name channels, too: (channel:a OR channel:b)
  const text =
    isAlternative || named.length < channels.is.length
      ? toSearchText({ ...filters, channels: { ...channels, is: [] } })
      : named.reduceRight(withoutPart, search.text)
  return { ...search, channelId, text }
}

/** The search text for one whole value; undefined if it cannot be searched for, such as a space. */
export function toTermText(name: keyof typeof LISTS, value: string): string | undefined {
  const list = LISTS[name]
  const wanted = name === 'user' ? toQuotedUser(value) : value
  const text = toSearchText({ ...noFilters(), [list]: { is: [wanted], not: [] } })
  const { filters, issues } = parseSearch(text)
  return issues.length === 0 && filters[list].is[0] === wanted ? text : undefined
}

function withChannel(filters: SearchFilters, channelId: string | undefined): SearchFilters {
  if (channelId === undefined) return filters
  const { channels } = filters
  return { ...filters, channels: { ...channels, is: [channelId, ...channels.is] } }
}

function namesChannels(text: string): boolean {
  return parseSearch(text).filters.channels.is.length > 0
}

/** Returns the hours of a time range that ends now; undefined for any other text. */
export function toHours(range: string): number | undefined {
  return Object.hasOwn(TIME_RANGES, range) ? TIME_RANGES[range] : undefined
}

function isMoment(text: string): boolean {
  return parseIsoTimestamp(text) !== undefined
}

function parseMoment(moment: string | undefined, nowMs: number): number | null {
  return moment === undefined ? null : (parseIsoTimestamp(toMoment(moment, nowMs)) ?? null)
}

function toMoment(moment: string, nowMs: number): string {
  const hours = toHours(moment)
  return hours === undefined ? moment : new Date(nowMs - hours * HOUR_MS).toISOString()
}

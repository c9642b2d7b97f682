import type { Event } from '../../../events/schema.ts'
import { parseIsoTimestamp } from '../../../events/timestamp.ts'
import {
  noFilters,
  parseSearch,
  toSearchText,
  type ValueFilter,
  type SearchFilters,
  type HasField,
  type SearchIssue,
} from '../../../events/search-query.ts'
import type { Filters as LiveFilters } from '../live/messages.ts'
import { toEventPath, toFeedPath } from '../paths.ts'
import { toFailure, type Failure } from '../request.ts'
import type { Match } from './feed.ts'
import { matchesMetadata } from './metadata.ts'

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
/** Time ranges that end now, in milliseconds. */
export const TIME_RANGES = {
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
  '7d': 168 * HOUR_MS,
  '30d': 720 * HOUR_MS,
}
const MAX_TEXT = 200

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
    from: from !== undefined && (isSpan(from) || isMoment(from)) ? from : undefined,
    to: to !== undefined && isMoment(to) ? to : undefined,
  }
}

/** The path of a search, or of an event that is open next to it. */
export function toSearchPath(project: string, search: Search, event?: string): string {
  const { text, from, to } = search
  const channelId = namesChannels(text) ? undefined : search.channelId
  const query = Object.entries({ channel: channelId, q: text, from, to }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const path = event === undefined ? toFeedPath(project) : toEventPath(project, event)
  return query.length > 0 ? `${path}?${new URLSearchParams(query)}` : path
}

/** Returns whether a search filters by more than a channel. */
export function isFiltered({ text, from, to }: Search): boolean {
  return text !== '' || from !== undefined || to !== undefined
}

/** The query for the server; `nowMs` is the end of a named time range. */
export function toQuery(search: Search, nowMs: number): Record<string, string> {
  const { text, channelId, from, to } = search
  const q = [channelId === undefined ? '' : `channel:${channelId}`, text].filter(Boolean).join(' ')
  return {
    ...(q && { q }),
    ...(from !== undefined && { from: toMoment(from, nowMs) }),
    ...(to !== undefined && { to }),
  }
}

/** The filters of a search, and its errors. */
export function parse(
  search: Search,
  nowMs: number,
): { filters: SearchFilters; issues: readonly SearchIssue[] } {
  const { q = '', from, to } = toQuery(search, nowMs)
  const { filters, issues } = parseSearch(q)
  const after = from === undefined ? undefined : parseIsoTimestamp(from)
  const before = to === undefined ? undefined : parseIsoTimestamp(to)
  return {
    filters: {
      ...filters,
      after: after === undefined ? filters.after : Math.max(after, filters.after ?? -Infinity),
      before: before === undefined ? filters.before : Math.min(before, filters.before ?? Infinity),
    },
    issues,
  }
}

/** The filters for the socket. They let through every match, and more if it lacks a filter. */
export function toLiveFilters({
  channels,
  tags,
  users,
  sources,
  words,
  phrases,
}: SearchFilters): LiveFilters {
  const [userId] = users.is
  const [source] = sources.is
  const text = toText(words, phrases)
  return {
    ...(isAccepted(channels.is, 255) && { channels: channels.is }),
    ...(isAccepted(tags.is, 50) && { tags: tags.is }),
    ...(userId !== undefined && users.is.length === 1 && isAccepted(users.is, 255) && { userId }),
    ...(source !== undefined &&
      sources.is.length === 1 &&
      isAccepted(sources.is, 100) && { source }),
    ...(isAccepted([text], MAX_TEXT) && { text }),
  }
}

/**
 * Returns whether only the server can decide if a new event matches. It alone knows the aliases of
 * a user and all spellings of channels and words. The socket can filter by one user, by channels
 * and by words. It cannot exclude them, match phrases or match several users.
 */
export function needsServer({ channels, users, words, phrases }: SearchFilters): boolean {
  return (
    users.is.length > 1 ||
    users.not.length + channels.not.length + words.not.length > 0 ||
    phrases.is.length + phrases.not.length > 0 ||
    toText(words, phrases).length > MAX_TEXT
  )
}

/** Returns a function that decides whether an event that passed `toLiveFilters` matches. */
export function createMatcher(filters: SearchFilters): (event: Event) => Match {
  const { sources, tags, metadata, has, after, before } = filters
  const ifPossible: Match = needsServer(filters) ? 'maybe' : 'yes'
  return event => {
    const ms = Date.parse(event.timestamp)
    const isPossible =
      (after === null || ms >= after) &&
      (before === null || ms < before) &&
      (sources.is.length === 0 || sources.is.includes(event.source)) &&
      !sources.not.includes(event.source) &&
      tags.is.every(tag => event.tags.includes(tag)) &&
      !tags.not.some(tag => event.tags.includes(tag)) &&
      metadata.is.every(one => matchesMetadata(event, one)) &&
      !metadata.not.some(one => matchesMetadata(event, one)) &&
      has.is.every(one => HAS_CHECKS[one](event)) &&
      !has.not.some(one => HAS_CHECKS[one](event))
    return isPossible ? ifPossible : 'no'
  }
}

/** The failure of an invalid search, in the form of the server's. */
export function toSearchFailure(issues: readonly SearchIssue[]): Failure {
  const details = issues.map(issue => ({ ...issue, path: ['q', ...issue.path] }))
  return toFailure({ code: 'invalid', message: 'The search is invalid.', details })
}

/** The search text without one of its terms. */
export function withoutTerm(filters: SearchFilters, { list, sign, value }: Term): string {
  const choice = filters[list]
  const left = { ...choice, [sign]: choice[sign].filter(other => other !== value) }
  return toSearchText({ ...filters, [list]: left })
}

/** A value that a search requires or excludes. */
export interface Term {
  list: (typeof LISTS)[number]
  sign: keyof ValueFilter
  value: string
}

/** All terms of a search except timestamps. */
export function listTerms(filters: SearchFilters): Term[] {
  return LISTS.flatMap(list =>
    (['is', 'not'] as const).flatMap(sign =>
      filters[list][sign].map(value => ({ list, sign, value })),
    ),
  )
}

/** The search text for one value; undefined if it cannot be searched for, such as a space. */
export function toTermText(
  list: 'channels' | 'users' | 'sources' | 'tags' | 'metadata',
  value: string,
) {
  const text = toSearchText({ ...noFilters(), [list]: { is: [value], not: [] } })
  const { filters, issues } = parseSearch(text)
  return issues.length === 0 && filters[list].is[0] === value ? text : undefined
}

const LISTS = [
  'channels',
  'users',
  'sources',
  'tags',
  'metadata',
  'has',
  'phrases',
  'words',
] as const
const HAS_CHECKS: Record<HasField, (event: Event) => boolean> = {
  description: ({ description }) => description !== null && description !== '',
  metadata: ({ metadata }) => Object.keys(metadata).length > 0,
  tags: ({ tags }) => tags.length > 0,
  user: ({ userId }) => userId !== null,
  icon: ({ icon }) => icon !== null,
}

/** The socket matches word prefixes. Phrases contain their words, so both are sent. */
function toText(words: ValueFilter, phrases: ValueFilter): string {
  return [...words.is, ...phrases.is].join(' ')
}

/** Returns whether the socket accepts these values. */
function isAccepted(values: readonly string[], most: number): boolean {
  return values.length > 0 && values.every(value => value !== '' && value.length <= most)
}

function namesChannels(text: string): boolean {
  return text !== '' && parseSearch(text).filters.channels.is.length > 0
}

function isSpan(name: string): name is keyof typeof TIME_RANGES {
  return Object.hasOwn(TIME_RANGES, name)
}

function isMoment(text: string): boolean {
  return parseIsoTimestamp(text) !== undefined
}

function toMoment(moment: string, nowMs: number): string {
  return isSpan(moment) ? new Date(nowMs - TIME_RANGES[moment]).toISOString() : moment
}

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

/** What a reader looks at, as the address of the page says it. */
export interface Search {
  /** Chosen among the channels; a text that names channels itself goes before it. */
  channelId: string | undefined
  /** As it is typed. */
  text: string
  /** A moment, or the name of one in `SPANS`: so long ago. */
  from: string | undefined
  to: string | undefined
}

const HOUR_MS = 3_600_000
/** The ranges of time that end now. */
export const TIME_RANGES = {
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
  '7d': 168 * HOUR_MS,
  '30d': 720 * HOUR_MS,
}
const MOST_TEXT = 200

export const EMPTY_SEARCH: Search = {
  channelId: undefined,
  text: '',
  from: undefined,
  to: undefined,
}

/** Reads the address of a page; what is no moment is left out. */
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

/** The address of what a search finds, or of an event that is looked at beside it. */
export function toSearchPath(project: string, search: Search, event?: string): string {
  const { text, from, to } = search
  const channelId = namesChannels(text) ? undefined : search.channelId
  const query = Object.entries({ channel: channelId, q: text, from, to }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const path = event === undefined ? toFeedPath(project) : toEventPath(project, event)
  return query.length > 0 ? `${path}?${new URLSearchParams(query)}` : path
}

/** Whether anything is asked for beyond a channel. */
export function isFiltered({ text, from, to }: Search): boolean {
  return text !== '' || from !== undefined || to !== undefined
}

/** What the server is asked; `nowMs` is when a span ends. */
export function toQuery(search: Search, nowMs: number): Record<string, string> {
  const { text, channelId, from, to } = search
  const q = [channelId === undefined ? '' : `channel:${channelId}`, text].filter(Boolean).join(' ')
  return {
    ...(q && { q }),
    ...(from !== undefined && { from: toMoment(from, nowMs) }),
    ...(to !== undefined && { to }),
  }
}

/** What a search asks for, and what is wrong with it. */
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

/** What the socket is asked for: all that fits, and more where it has no word for it. */
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
    ...(isTaken(channels.is, 255) && { channels: channels.is }),
    ...(isTaken(tags.is, 50) && { tags: tags.is }),
    ...(userId !== undefined && users.is.length === 1 && isTaken(users.is, 255) && { userId }),
    ...(source !== undefined && sources.is.length === 1 && isTaken(sources.is, 100) && { source }),
    ...(isTaken([text], MOST_TEXT) && { text }),
  }
}

/**
 * Whether it takes the server to tell which of the events that come are wanted: it alone knows users by all their names,
 * and channels and words in every spelling. The socket tells one user, channels and words; what is shut out by them,
 * exact words and several users are looked up.
 */
export function needsServer({ channels, users, words, phrases }: SearchFilters): boolean {
  return (
    users.is.length > 1 ||
    users.not.length + channels.not.length + words.not.length > 0 ||
    phrases.is.length + phrases.not.length > 0 ||
    toText(words, phrases).length > MOST_TEXT
  )
}

/** Tells whether what comes through `toLiveFilters` is wanted. */
export function createMatcher(filters: SearchFilters): (event: Event) => Match {
  const { sources, tags, metadata, has, after, before } = filters
  const unsure: Match = needsServer(filters) ? 'maybe' : 'wanted'
  return event => {
    const ms = Date.parse(event.timestamp)
    const canBe =
      (after === null || ms >= after) &&
      (before === null || ms < before) &&
      (sources.is.length === 0 || sources.is.includes(event.source)) &&
      !sources.not.includes(event.source) &&
      tags.is.every(tag => event.tags.includes(tag)) &&
      !tags.not.some(tag => event.tags.includes(tag)) &&
      metadata.is.every(one => matchesMetadata(event, one)) &&
      !metadata.not.some(one => matchesMetadata(event, one)) &&
      has.is.every(one => HAVING[one](event)) &&
      !has.not.some(one => HAVING[one](event))
    return canBe ? unsure : 'unwanted'
  }
}

/** A search that cannot be understood, as the server would answer it. */
export function toSearchFailure(issues: readonly SearchIssue[]): Failure {
  const details = issues.map(issue => ({ ...issue, path: ['q', ...issue.path] }))
  return toFailure({ code: 'invalid', message: 'The search cannot be understood.', details })
}

/** The text of a search without one of its terms. */
export function withoutTerm(filters: SearchFilters, { list, sign, value }: Term): string {
  const choice = filters[list]
  const left = { ...choice, [sign]: choice[sign].filter(other => other !== value) }
  return toSearchText({ ...filters, [list]: left })
}

/** A value that a search asks for or shuts out. */
export interface Term {
  list: (typeof LISTS)[number]
  sign: keyof ValueFilter
  value: string
}

/** All that a text asks for, but for its moments. */
export function listTerms(filters: SearchFilters): Term[] {
  return LISTS.flatMap(list =>
    (['is', 'not'] as const).flatMap(sign =>
      filters[list][sign].map(value => ({ list, sign, value })),
    ),
  )
}

/** A text that asks for one value; undefined where it would not be understood, as with nothing but space. */
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
const HAVING: Record<HasField, (event: Event) => boolean> = {
  description: ({ description }) => description !== null && description !== '',
  metadata: ({ metadata }) => Object.keys(metadata).length > 0,
  tags: ({ tags }) => tags.length > 0,
  user: ({ userId }) => userId !== null,
  icon: ({ icon }) => icon !== null,
}

/** Words that begin words, and exact ones: the socket tells the first, which the second are, too. */
function toText(words: ValueFilter, phrases: ValueFilter): string {
  return [...words.is, ...phrases.is].join(' ')
}

/** Whether the socket takes such values. */
function isTaken(values: readonly string[], most: number): boolean {
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

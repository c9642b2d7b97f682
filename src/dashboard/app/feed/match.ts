import type { Event } from '../../../log/events/schema.ts'
import {
  isWholeName,
  noFilters,
  readExactUser,
  toExactUser,
  type FilterGroup,
  type HasField,
  type SearchFilters,
  type ValueFilter,
} from '../../../log/events/search-filters.ts'
import type { Filters as LiveFilters } from '../live/messages.ts'
import type { Match } from './feed.ts'
import { matchesMetadata } from './metadata.ts'

const MAX_TEXT = 200

/** The filters for the socket. They let through every match, and more if it lacks a filter. */
export function toLiveFilters(filters: SearchFilters): LiveFilters {
  const { channels, tags, users, sources, words, phrases } = filters
  const userId = users.is.length === 1 ? readExactUser(users.is[0]!) : undefined
  const [source] = sources.is
  const text = toText(words, phrases)
  const alternatives = findLiveGroup(filters)?.filters.map(toLiveFilters)
  return {
    ...(isAccepted(channels.is, 255) && { channels: channels.is }),
    ...(isAccepted(tags.is, 50) && { tags: tags.is }),
    ...(userId !== undefined && isAccepted([userId], 255) && { userId }),
    ...(source !== undefined &&
      sources.is.length === 1 &&
      isAccepted(sources.is, 100) && { source }),
    ...(isAccepted([text], MAX_TEXT) && { text }),
    ...(alternatives && { any: alternatives }),
  }
}

/** The search that filters of the socket, without alternatives, are exactly. */
export function fromLiveFilters({ channels, tags, userId, source, text }: LiveFilters) {
  const is = (values: string[] | undefined) => ({ is: values ?? [], not: [] })
  return {
    ...noFilters(),
    channels: is(channels),
    users: is(userId === undefined ? undefined : [toExactUser(userId)]),
    sources: is(source === undefined ? undefined : [source]),
    tags: is(tags),
    words: is(text?.split(' ')),
  }
}

/** The first group whose alternatives the socket can decide about. It takes only one group. */
function findLiveGroup({ groups }: SearchFilters): FilterGroup | undefined {
  const isLive = (one: SearchFilters) =>
    JSON.stringify(one) === JSON.stringify(fromLiveFilters(toLiveFilters(one)))
  return groups.find(({ isExcluded, filters }) => !isExcluded && filters.every(isLive))
}

/**
 * Returns whether only the server can decide if a new event matches. It alone knows the aliases and
 * names of users, and all spellings of channels and words. The socket can filter by one whole user,
 * by channels, by words and by one group of such filters. It cannot exclude them, match phrases or
 * titles, or match names of users or several users.
 */
export function needsServer(filters: SearchFilters): boolean {
  const { channels, users, alike, words, phrases, groups } = filters
  const decided = findLiveGroup(filters)
  return (
    users.is.length > 1 ||
    users.is.some(user => readExactUser(user) === undefined) ||
    users.not.length + channels.not.length + words.not.length > 0 ||
    [alike, phrases].some(({ is, not }) => is.length + not.length > 0) ||
    toText(words, phrases).length > MAX_TEXT ||
    groups.some(group => group !== decided && group.filters.some(needsServerInGroup))
  )
}

/** Returns a function that decides whether an event that passed `toLiveFilters` matches. */
export function createMatcher(filters: SearchFilters): (event: Event) => Match {
  const { users } = filters
  const isSent = toLiveFilters(filters).userId !== undefined
  const others = { ...filters, users: noFilters().users, groups: [] }
  const ifPossible: Match = needsServer(others) ? 'maybe' : 'yes'
  const decided = findLiveGroup(filters)
  const groups = filters.groups.filter(group => group !== decided)
  return event =>
    all([
      fitsExactly(filters, event) ? ifPossible : 'no',
      judgeUsers(isSent ? { ...users, is: [] } : users, event.userId),
      ...groups.map(group => judgeGroup(group, event)),
    ])
}

/** Checks what the browser knows as exactly as the server. */
function fitsExactly(filters: SearchFilters, event: Event): boolean {
  const { sources, tags, metadata, has, after, before } = filters
  const ms = Date.parse(event.timestamp)
  return (
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
  )
}

function judgeGroup({ isExcluded, filters }: FilterGroup, event: Event): Match {
  const none = all(filters.map(one => OPPOSITES[judgeAlternative(one, event)]))
  return isExcluded ? none : OPPOSITES[none]
}

/** Decides about an alternative. The socket has not checked any of its values. */
function judgeAlternative(filters: SearchFilters, event: Event): Match {
  const { channels, users, alike, words, phrases, groups } = filters
  const hasWords = [alike, words, phrases].some(({ is, not }) => is.length + not.length > 0)
  return all([
    fitsExactly(filters, event) ? 'yes' : 'no',
    judgeNames(channels, name => name === event.channelId || name === event.channelName),
    judgeUsers(users, event.userId),
    hasWords ? 'maybe' : 'yes',
    ...groups.map(group => judgeGroup(group, event)),
  ])
}

/** Decides about users. The server alone knows their other names, and how it folds them. */
function judgeUsers(users: ValueFilter, userId: string | null): Match {
  if (userId === null) return users.is.length > 0 ? 'no' : 'yes'
  return judgeNames(users, user => {
    const exact = readExactUser(user)
    if (exact !== undefined) return exact === userId
    const [wanted, id] = [user.toLowerCase(), userId.toLowerCase()]
    return isAscii(user + userId) && (isWholeName(user) ? id === wanted : id.startsWith(wanted))
  })
}

function isAscii(text: string): boolean {
  return /^[ -~]*$/.test(text)
}

/** Decides about channels or users. Those that are not named can have the same meaning. */
function judgeNames({ is, not }: ValueFilter, isNamed: (value: string) => boolean): Match {
  const isIncluded = is.length === 0 || is.some(isNamed) ? 'yes' : 'maybe'
  const isExcluded = not.some(isNamed) ? 'no' : not.length > 0 ? 'maybe' : 'yes'
  return all([isIncluded, isExcluded])
}

const OPPOSITES = { yes: 'no', no: 'yes', maybe: 'maybe' } as const satisfies Record<Match, Match>

function all(matches: readonly Match[]): Match {
  if (matches.includes('no')) return 'no'
  return matches.includes('maybe') ? 'maybe' : 'yes'
}

function needsServerInGroup({
  channels,
  users,
  alike,
  words,
  phrases,
  groups,
}: SearchFilters): boolean {
  return (
    [channels, users, alike, words, phrases].some(({ is, not }) => is.length + not.length > 0) ||
    groups.some(({ filters }) => filters.some(needsServerInGroup))
  )
}

const HAS_CHECKS: Record<HasField, (event: Event) => boolean> = {
  description: ({ description }) => description !== null && description !== '',
  metadata: ({ metadata }) => Object.keys(metadata).length > 0,
  tags: ({ tags }) => tags.length > 0,
  user: ({ userId }) => userId !== null,
  icon: ({ icon }) => icon !== null,
}

/**
 * The socket matches words by their beginnings. Of phrases it gets the words in ASCII. The server
 * ignores symbols beside words, so without the words of a phrase they are not sent.
 */
function toText(words: ValueFilter, phrases: ValueFilter): string {
  const parts = phrases.is.flatMap(phrase => phrase.split(/[\0-/:-@[-`{-\x7f]+/))
  const inAscii = parts.filter(part => /^[a-z0-9]+$/i.test(part))
  const hasPhrases = phrases.is.length > 0
  return [...words.is.filter(word => !hasPhrases || /[\p{L}\p{N}]/u.test(word)), ...inAscii].join(
    ' ',
  )
}

/** Returns whether the socket accepts these values. */
function isAccepted(values: readonly string[], most: number): boolean {
  return values.length > 0 && values.every(value => value !== '' && value.length <= most)
}

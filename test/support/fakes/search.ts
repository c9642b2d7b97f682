import { matchesMetadata } from '../../../src/log/events/metadata-values.ts'
import {
  isWholeName,
  readExactUser,
  type SearchFilters,
} from '../../../src/log/events/search-filters.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'

const BUCKETS = 24
const HOUR_MS = 3_600_000

/** Returns the events of a fake log that a request asks for, newest first. */
export function findEvents(log: readonly any[], { searchParams }: URL): any[] {
  const search = Object.fromEntries(searchParams)
  return log.filter(event => isSent(event, search)).reverse()
}

/** Returns true if a socket with this search gets the event. */
export function isSent(
  event: any,
  { q = '', from = '', to = '' }: Record<string, string>,
): boolean {
  const at = Date.parse(event.timestamp)
  return fits(event, parseSearch(q).filters) && !(at < Date.parse(from)) && !(at >= Date.parse(to))
}

/** Returns the histogram that a request asks for. */
export function countEvents(log: readonly any[], url: URL) {
  const nowMs = Date.parse(url.searchParams.get('to') ?? '') || Date.now()
  const fromMs =
    Date.parse(url.searchParams.get('from') ?? '') ||
    Math.floor(nowMs / HOUR_MS + 1 - BUCKETS) * HOUR_MS
  const stepMs = Math.max(1_000, Math.ceil((nowMs - fromMs) / BUCKETS / 1_000) * 1_000)
  const counts = Array.from({ length: BUCKETS }, () => 0)
  const found = findEvents(log, url)
  for (const { timestamp } of found) {
    const at = Math.floor((Date.parse(timestamp) - fromMs) / stepMs)
    if (counts[at] !== undefined) counts[at] += 1
  }
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(fromMs + BUCKETS * stepMs).toISOString(),
    stepMs,
    total: found.length,
    channels: [{ id: 'chn_1', name: 'payments', counts }],
    others: counts.map(() => 0),
    isPartial: false,
    completeSince: null,
  }
}

function fits(
  event: any,
  {
    channels,
    users,
    sources,
    tags,
    metadata,
    words,
    phrases,
    groups,
    after,
    before,
  }: SearchFilters,
): boolean {
  const text = `${event.title} ${event.description ?? ''}`.toLowerCase()
  const has = {
    channels: (one: string) => one === event.channelId || one === event.channelName,
    users: (one: string) => {
      const exact = readExactUser(one)
      const name = String(event.userId ?? '').toLowerCase()
      if (exact !== undefined) return exact === event.userId
      const wanted = one.toLowerCase()
      return isWholeName(one) ? name === wanted : name.startsWith(wanted)
    },
    sources: (one: string) => one === event.source,
    tags: (one: string) => event.tags.includes(one),
    words: (one: string) => ` ${text}`.includes(` ${one.toLowerCase()}`),
    phrases: (one: string) => ` ${text} `.includes(` ${one.toLowerCase()} `),
  }
  const at = Date.parse(event.timestamp)
  const isOne = (name: keyof typeof has, { is }: { is: string[] }) =>
    is.length === 0 || is.some(has[name])
  return (
    at >= (after ?? -Infinity) &&
    at < (before ?? Infinity) &&
    isOne('channels', channels) &&
    isOne('users', users) &&
    isOne('sources', sources) &&
    tags.is.every(has.tags) &&
    metadata.is.every(one => matchesMetadata(event, one)) &&
    words.is.every(has.words) &&
    phrases.is.every(has.phrases) &&
    !channels.not.some(has.channels) &&
    !users.not.some(has.users) &&
    !tags.not.some(has.tags) &&
    !words.not.some(has.words) &&
    groups.every(({ isExcluded, filters }) => filters.some(one => fits(event, one)) !== isExcluded)
  )
}

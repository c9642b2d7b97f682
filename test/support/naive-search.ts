import { isRawNumber } from '../../src/http/exact-json.ts'
import type { Level } from '../../src/log/channels/level.ts'
import type { State } from '../../src/log/events/state.ts'
import {
  isWholeName,
  readExactUser,
  type ValueFilter,
  type SearchFilters,
  type HasField,
} from '../../src/log/events/search-filters.ts'

/** An event as a test sent it. */
export interface SentEvent {
  seq: number
  channelId?: string
  channelName: string
  title: string
  description: string
  icon: string | undefined
  tags: string[]
  metadata: Record<string, unknown>
  userId: string | null
  source: string
  level?: Level | undefined
  thread?: string | undefined
  state?: State | undefined
  threadSeq?: number | undefined
  timestamp: string
  isDeleted: boolean
}

/** Returns true if an event matches filters, in the simplest code. */
export function matchesFilters(
  event: SentEvent,
  filters: SearchFilters,
  owners: Map<string, string>,
): boolean {
  const toOwner = (name: string) => owners.get(name) ?? name
  const isOf = (user: string, reference: string) => {
    const exact = readExactUser(user)
    if (exact !== undefined) return toOwner(exact) === toOwner(reference)
    const owner = toOwner(reference)
    const names = [owner, ...[...owners.keys()].filter(alias => owners.get(alias) === owner)]
    const wanted = user.toLowerCase()
    return names.some(name =>
      isWholeName(user) ? name.toLowerCase() === wanted : name.toLowerCase().startsWith(wanted),
    )
  }
  const words = `${event.title} ${event.description}`.toLowerCase().match(/[a-z0-9]+/g) ?? []
  const at = Date.parse(event.timestamp)
  const has: Record<HasField, boolean> = {
    description: event.description !== '',
    metadata: Object.keys(event.metadata).length > 0,
    tags: event.tags.length > 0,
    user: event.userId !== null,
    icon: event.icon !== undefined,
  }
  const oneOf = ({ is, not }: ValueFilter, test: (value: string) => boolean) =>
    (is.length === 0 || is.some(test)) && !not.some(test)
  const all = <Value extends string>(
    { is, not }: ValueFilter<Value>,
    test: (value: Value) => boolean,
  ) => is.every(test) && !not.some(test)
  return (
    !event.isDeleted &&
    oneOf(
      filters.channels,
      name => name === event.channelId || name.toLowerCase() === event.channelName.toLowerCase(),
    ) &&
    oneOf(filters.users, user => event.userId !== null && isOf(user, event.userId)) &&
    oneOf(filters.sources, source => source === event.source) &&
    oneOf(filters.levels, level => level === (event.level ?? 'normal')) &&
    oneOf(filters.states, state => state === event.state) &&
    oneOf(filters.threads, key => key === event.thread) &&
    all(filters.tags, tag => event.tags.includes(tag)) &&
    all(filters.metadata, one => listLeaves(event.metadata).includes(one)) &&
    all(filters.has, one => has[one]) &&
    all(filters.words, word => words.some(one => one.startsWith(word.toLowerCase()))) &&
    all(filters.phrases, phrase => ` ${words.join(' ')} `.includes(` ${phrase.toLowerCase()} `)) &&
    at >= (filters.after ?? -Infinity) &&
    at < (filters.before ?? Infinity) &&
    filters.groups.every(
      ({ isExcluded, filters }) =>
        filters.some(one => matchesFilters(event, one, owners)) !== isExcluded,
    )
  )
}

/** Returns the events without those of a thread that a list leaves out. */
export function takeLatest(events: readonly SentEvent[]): SentEvent[] {
  const visible = events.filter(({ isDeleted }) => !isDeleted)
  const latest = new Map(visible.map(({ threadSeq, seq }) => [threadSeq, seq]))
  return events.filter(
    ({ threadSeq, seq }) => threadSeq === undefined || latest.get(threadSeq) === seq,
  )
}

/**
 * Returns every value of an object as `path=value`, for nested objects and arrays under all names.
 */
function listLeaves(value: object, path = ''): string[] {
  return Object.entries(value).flatMap(([name, one]) => {
    if (typeof one === 'object' && one !== null && !isRawNumber(one)) {
      return listLeaves(one, `${path}${name}.`)
    }
    return [`${path}${name}=${typeof one === 'string' ? one : JSON.stringify(one)}`]
  })
}

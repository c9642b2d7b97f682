import type { Channel } from '../channels/schema.ts'
import type { Event, EventInput, EventQuery as EventFilters } from '../events/schema.ts'
import type { Page } from '../http/envelope.ts'
import type { Erased, Identified, IdentifyInput, User } from '../identities/schema.ts'
import type { Me } from '../keys/schema.ts'
import { createCall } from './request.ts'
import type { CallOptions, ClientOptions, WriteOptions } from './request.ts'

export {
  ConnectionError,
  RateLimitError,
  TidingsError,
  UnauthorizedError,
  ValidationError,
} from './errors.ts'
export type { Answer } from './answer.ts'
export type { CallOptions, ClientOptions, WriteOptions } from './request.ts'
export type { Channel } from '../channels/schema.ts'
export type { Event, EventInput } from '../events/schema.ts'
export type { Detail, Page } from '../http/envelope.ts'
export type { Erased, Identified, IdentifyInput, User } from '../identities/schema.ts'
export type { Me } from '../keys/schema.ts'

/** Which part of a list to answer. */
export type PageQuery = {
  /** The `nextCursor` of the page before; null or absent for the first page. */
  cursor?: string | null
  /** Items on a page, 1..100. */
  limit?: number
}

/** Which events to list; every filter given must hold. `after` lists what came after that `seq`, oldest first. */
export type EventQuery = Omit<EventFilters, 'cursor' | 'from' | 'to'> &
  PageQuery & {
    /** Bounds of `timestamp`; ISO 8601 as text. */
    from?: string | Date
    to?: string | Date
  }

/**
 * The HTTP interface of a Tidings server. Every method resolves to the `data` of the answer, after
 * repeating attempts that failed for a passing reason, and rejects with a `TidingsError`: a
 * `ValidationError` (400), `UnauthorizedError` (401), `RateLimitError` (429), `ConnectionError` (no
 * answer) or, for all else, one with its `status` and `code`. A call that was aborted rejects with the
 * signal's reason; input that no request can carry, with a TypeError.
 */
export type Client = {
  events: {
    /** Records an event, once however often the attempt is repeated. */
    create(event: EventInput, options?: WriteOptions): Promise<Event>
    /** 404 `not_found` when the project has no such event. */
    get(id: string, options?: CallOptions): Promise<Event>
    /** One page of events. */
    list(query?: EventQuery, options?: CallOptions): Promise<Page<Event>>
    /** Every event from the query's page on, one by one, fetching pages of `limit` as they are needed. */
    all(query?: EventQuery, options?: CallOptions): AsyncGenerator<Event, void, undefined>
  }
  /** Creates or updates a user; an alias that is taken is told in `aliases.failed`, not thrown. */
  identify(input: IdentifyInput, options?: WriteOptions): Promise<Identified>
  channels: {
    /** One page of channels. */
    list(query?: PageQuery, options?: CallOptions): Promise<Page<Channel>>
  }
  users: {
    /** Finds a user by user_id or alias; 404 `not_found` when there is none. */
    get(userId: string, options?: CallOptions): Promise<User>
    /** Erases a user, by the exact user_id, for good. When an answer was lost, the repeat finds nothing left. */
    erase(userId: string, options?: CallOptions): Promise<Erased>
  }
  /** What the API key belongs to and may do. */
  me(options?: CallOptions): Promise<Me>
}

/** Makes a client of one server and API key; throws a TypeError when `baseUrl` or `apiKey` cannot be used. */
export function createClient(options: ClientOptions): Client {
  const call = createCall(options)

  async function listEvents(query?: EventQuery, options?: CallOptions) {
    return call<Page<Event>>('GET', '/v1/events' + toSearch(query), options)
  }

  return {
    events: {
      create: (event, options) => call('POST', '/v1/events', { ...options, body: event }),
      get: async (id, options) => call('GET', '/v1/events/' + toSegment(id), options),
      list: listEvents,
      async *all(query, options) {
        const { after, ...filters } = query ?? {}
        let cursor = query?.cursor ?? null
        do {
          // A cursor says by itself where `after` has come to, and in which direction.
          const start = cursor === null ? query : { ...filters, cursor }
          const page = await listEvents(start, options)
          yield* page.items
          cursor = page.nextCursor
        } while (cursor !== null)
      },
    },
    identify: (input, options) => call('POST', '/v1/identify', { ...options, body: input }),
    channels: {
      list: async (query, options) => call('GET', '/v1/channels' + toSearch(query), options),
    },
    users: {
      get: async (userId, options) => call('GET', '/v1/users/' + toSegment(userId), options),
      erase: async (userId, options) => call('DELETE', '/v1/users/' + toSegment(userId), options),
    },
    me: options => call('GET', '/v1/me', options),
  }
}

function toSearch(query: EventQuery = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value != null) search.set(name, value instanceof Date ? value.toISOString() : `${value}`)
  }
  const text = `${search}`
  return text && `?${text}`
}

function toSegment(id: string): string {
  // Addresses drop the segments `.` and `..`, encoded or not, and would name the list instead.
  if (/^\.{0,2}$/.test(id)) throw new TypeError(`'${id}' cannot be part of an address`)
  return encodeURIComponent(id)
}

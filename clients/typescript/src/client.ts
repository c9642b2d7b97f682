import { toJson } from './json.ts'
import { createQueue } from './queue.ts'
import type { FlushOptions, QueueOptions } from './queue.ts'
import { createCall } from './request.ts'
import type { CallOptions, ClientOptions, WriteOptions } from './request.ts'
import type {
  Answer,
  Channel,
  Erased,
  Event,
  EventDetail,
  EventFilters,
  EventInput,
  Identified,
  IdentifyInput,
  Me,
  Thread,
  ThreadFilters,
  User,
} from './schema.ts'

export {
  ConnectionError,
  RateLimitError,
  TidingsError,
  UnauthorizedError,
  ValidationError,
} from './errors.ts'
export type { ResponseInfo } from './response.ts'
export type { CallOptions, ClientOptions, WriteOptions } from './request.ts'
export type { FlushOptions, QueueOptions } from './queue.ts'
export type {
  Answer,
  Channel,
  Detail,
  Erased,
  Event,
  EventDetail,
  EventInput,
  Identified,
  IdentifyInput,
  Me,
  Thread,
  User,
} from './schema.ts'

/**
 * A page of a list. `nextCursor` leads to the next page, also after a short one. It is null on the
 * last page.
 */
export type Page<Item> = {
  items: Item[]
  nextCursor: string | null
}

/** Selects a page of a list. */
export type PageQuery = {
  /** The `nextCursor` of the previous page. Null or absent for the first page. */
  cursor?: string | null
  /** Items per page, 1..100. A page can have fewer, although more follow. */
  limit?: number
}

/**
 * Selects events that match every given filter. With `after`, the list has the events after that
 * `seq`, oldest first.
 */
export type EventQuery = Omit<EventFilters, 'cursor' | 'from' | 'to'> &
  PageQuery & {
    /** Bounds of `timestamp`: a Date, or ISO 8601 text. */
    from?: string | Date
    to?: string | Date
  }

/** Selects the threads of a key in a channel; without both, the open threads. */
export type ThreadQuery = Omit<ThreadFilters, 'cursor'> & PageQuery

/**
 * The HTTP API of a Tidings server. Every method resolves to the `data` of the response. Attempts
 * that failed for a transient reason are retried.
 *
 * A failed call rejects with a `TidingsError`: `ValidationError` (400), `UnauthorizedError` (401),
 * `RateLimitError` (429), `ConnectionError` (no response), or a plain one with `status` and `code`.
 * An aborted call rejects with the signal's reason. Input that no request can carry rejects with a
 * TypeError.
 */
export type Client = {
  events: {
    /** Creates an event. Retries never create a second one. */
    create(event: EventInput, options?: WriteOptions): Promise<EventDetail>
    /** Gets an event. Rejects with 404 `not_found` when the project has no such event. */
    get(id: string, options?: CallOptions): Promise<EventDetail>
    /**
     * Gets the answer to the question of an event. With `wait`, up to 60 seconds, it resolves as
     * soon as somebody answers. Rejects with 404 `not_found` for an event without a question.
     */
    getAnswer(id: string, options?: CallOptions & { wait?: number }): Promise<Answer>
    /** Lists one page of events. */
    list(query?: EventQuery, options?: CallOptions): Promise<Page<Event>>
    /** Yields every event from the query's page on. Fetches pages of `limit` events as needed. */
    all(query?: EventQuery, options?: CallOptions): AsyncGenerator<Event, void, undefined>
  }
  /**
   * Sends an event in the background, with the time of this call by the server's clock. After a
   * transient failure, the event waits in memory and is sent again. Returns false when the queue is
   * full. `onDrop` gets every event that is not sent. Throws a TypeError for input that no request
   * can carry.
   */
  queue(event: EventInput, options?: QueueOptions): boolean
  /**
   * Sends what waits at once, and waits until the queue is empty. Call it before the program ends.
   * Resolves to the number of events that are still unsent after `timeoutMs`.
   */
  flush(options?: FlushOptions): Promise<number>
  /**
   * Creates or updates a user. Aliases that are taken are listed in `aliases.failed`, not thrown.
   */
  identify(input: IdentifyInput, options?: WriteOptions): Promise<Identified>
  channels: {
    /** Lists one page of channels. */
    list(query?: PageQuery, options?: CallOptions): Promise<Page<Channel>>
  }
  threads: {
    /** Lists one page of threads. */
    list(query?: ThreadQuery, options?: CallOptions): Promise<Page<Thread>>
  }
  users: {
    /** Gets a user by user_id or alias. Rejects with 404 `not_found` when there is none. */
    get(userId: string, options?: CallOptions): Promise<User>
    /**
     * Erases a user permanently, by the exact user_id. After 5 s, the server continues in the
     * background, and `events` is the number so far. A repeated call resolves to the same erasure.
     * Rejects with 404 `not_found` if there was no such user.
     */
    erase(userId: string, options?: CallOptions): Promise<Erased>
  }
  /** Gets the project and the scopes of the API key. */
  me(options?: CallOptions): Promise<Me>
}

/** Creates a client for one server and API key. Throws a TypeError for an invalid option. */
export function createClient(options: ClientOptions): Client {
  const { call, clock } = createCall(options)

  async function listEvents(query?: EventQuery, options?: CallOptions) {
    return call<Page<Event>>('GET', '/v1/events' + toSearch(query), options)
  }

  return {
    events: {
      create: async (event, options) =>
        call('POST', '/v1/events', { ...options, body: toJson(event) }),
      get: async (id, options) => call('GET', '/v1/events/' + toSegment(id), options),
      getAnswer: async (id, { wait = 0, ...options } = {}) =>
        call('GET', `/v1/events/${toSegment(id)}/answer${toSearch({ wait })}`, {
          ...options,
          waitMs: wait * 1_000,
        }),
      list: listEvents,
      async *all(query, options) {
        const { after, ...filters } = query ?? {}
        let cursor = query?.cursor ?? null
        do {
          // A cursor already contains the position of `after` and the direction.
          const start = cursor === null ? query : { ...filters, cursor }
          const page = await listEvents(start, options)
          yield* page.items
          cursor = page.nextCursor
        } while (cursor !== null)
      },
    },
    ...createQueue(call, clock, options),
    identify: async (input, options) =>
      call('POST', '/v1/identify', { ...options, body: toJson(input) }),
    channels: {
      list: async (query, options) => call('GET', '/v1/channels' + toSearch(query), options),
    },
    threads: {
      list: async (query, options) => call('GET', '/v1/threads' + toSearch(query), options),
    },
    users: {
      get: async (userId, options) => call('GET', '/v1/users/' + toSegment(userId), options),
      erase: async (userId, options) => call('DELETE', '/v1/users/' + toSegment(userId), options),
    },
    me: options => call('GET', '/v1/me', options),
  }
}

function toSearch(query: object = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value != null) search.set(name, value instanceof Date ? value.toISOString() : `${value}`)
  }
  const text = `${search}`
  return text && `?${text}`
}

function toSegment(id: string): string {
  // URLs drop the segments `.` and `..`, encoded or not, and would address the list instead.
  if (/^\.{0,2}$/.test(id)) throw new TypeError(`'${id}' cannot be part of a URL`)
  return encodeURIComponent(id)
}

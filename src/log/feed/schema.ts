import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Nullable } from '../../http/schema-parts.ts'
import { LEVELS } from '../channels/level.ts'
import { STATES } from '../events/state.ts'
import { Event } from '../events/schema.ts'
import { SearchQuery } from '../events/search-schema.ts'

const ShortText = (maxLength: number) => Text({ minLength: 1, maxLength })
const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const FILTERS = {
  /** Names or ids of channels. The event is in one of them. */
  channels: Type.Optional(Type.Array(ShortText(255), { minItems: 1, maxItems: 50 })),
  /** The event has all of these tags. */
  tags: Type.Optional(Type.Array(ShortText(50), { minItems: 1, maxItems: 20 })),
  /** A user_id or an alias. It is resolved when the event is sent. */
  userId: Type.Optional(ShortText(255)),
  source: Type.Optional(ShortText(100)),
  level: Type.Optional(OneOf(LEVELS)),
  state: Type.Optional(OneOf(STATES)),
  thread: Type.Optional(ShortText(255)),
  /** Prefixes of words in the title or description. */
  text: Type.Optional(ShortText(200)),
}

/** The filters of a subscription. An event must match all of them. */
export const FeedFilters = Type.Object(
  {
    ...FILTERS,
    /** Alternatives. The event matches at least one of them. */
    any: Type.Optional(Type.Array(Type.Object(FILTERS, closed), { minItems: 1, maxItems: 20 })),
  },
  closed,
)
export type FeedFilters = Static<typeof FeedFilters>

/** Subscribes to a project, or replaces the subscription. */
export const Subscribe = Type.Object(
  {
    type: Type.Literal('subscribe'),
    project: ShortText(64),
    /**
     * The last seq that the client has. 0 selects all stored events; null or absent, only new ones.
     */
    after: Type.Optional(Nullable(Seq)),
    /** The epoch to which `after` belongs. */
    epoch: Type.Optional(ShortText(64)),
    filters: Type.Optional(FeedFilters),
    /** A search like that of the list of events. An event must match it, too. */
    search: Type.Optional(Type.Pick(SearchQuery, ['q', 'from', 'to'], closed)),
  },
  closed,
)
export type Subscribe = Static<typeof Subscribe>

export const Unsubscribe = Type.Object({
  type: Type.Literal('unsubscribe'),
  project: ShortText(64),
})

/** Asks for the heads of all projects that the account may read, without their events. */
export const Watch = Type.Object({ type: Type.Literal('watch') })

const GAP_REASONS = ['retention', 'epoch', 'ahead'] as const
export type GapReason = (typeof GAP_REASONS)[number]

const ERROR_CODES = ['not_found', 'invalid', 'too_many'] as const

const project = Type.String()

/** A message from the server. */
export const ServerMessage = Type.Union([
  /**
   * The first message on a socket. A seq is only valid within its epoch. `build` changes when the
   * files of the dashboard do.
   */
  Type.Object(
    { type: Type.Literal('hello'), epoch: Type.String({ format: 'uuid' }), build: Type.String() },
    closed,
  ),
  /**
   * The subscription starts. `recovered`: the events that follow continue from `after` without a
   * gap.
   */
  Type.Object(
    { type: Type.Literal('subscribed'), project, head: Seq, recovered: Type.Boolean() },
    closed,
  ),
  /**
   * A new event, or one whose deletion was undone. Each goes to the subscriptions that it matches.
   */
  Type.Object({ type: OneOf(['event', 'restored']), project, seq: Seq, event: Event }, closed),
  /** An event was deleted. */
  Type.Object({ type: Type.Literal('deleted'), project, seq: Seq }, closed),
  /**
   * The thread with this `threadSeq` was acknowledged, or the event with this `seq`; or a question
   * of the thread was answered.
   */
  Type.Object({ type: Type.Literal('acknowledged'), project, seq: Seq }, closed),
  Type.Object(
    { type: Type.Literal('gap'), project, reason: OneOf(GAP_REASONS), head: Seq },
    closed,
  ),
  /** Every matching event up to `head` has been sent. */
  Type.Object({ type: Type.Literal('heartbeat'), project, head: Seq }, closed),
  /** The heartbeat of a socket without subscriptions. */
  Type.Object({ type: Type.Literal('heartbeat') }, closed),
  /**
   * The head of each log that has changed, at most once a second. The first one after `watch` has
   * all projects.
   */
  Type.Object({ type: Type.Literal('heads'), heads: Type.Record(project, Seq) }, closed),
  /** The account's read marks have changed on one of its devices. */
  Type.Object({ type: Type.Literal('unread'), project }, closed),
  Type.Object(
    {
      type: Type.Literal('error'),
      code: OneOf(ERROR_CODES),
      message: Type.String(),
      project: Type.Optional(project),
    },
    closed,
  ),
])

/** The codes and reasons with which the feed closes a socket, besides the errors of RFC 6455. */
export const CLOSE_REASONS = {
  /** The client should reconnect. */
  stopping: [1001, 'The server is stopping'],
  /** The session has ended, or the account has lost access to a project. */
  noAccess: [1008, 'Signed out, or no longer allowed to read the project'],
  failed: [1011, 'Internal error'],
  /** The server stops soon. Another one takes the client. */
  draining: [1012, 'The server is stopping'],
  /** A new epoch has begun: the database was restored, or a standby was promoted. */
  restored: [1012, 'A new epoch has begun'],
  /** The client reads too slowly. It may reconnect with its cursor. */
  tooSlow: [1013, 'Too slow'],
  tooMany: [1013, 'Too many sockets'],
  invalid: [4000, 'Too many invalid messages'],
  tooManyMessages: [4029, 'Too many messages'],
} as const satisfies Record<string, readonly [number, string]>

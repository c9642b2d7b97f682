import { Type, type Static } from '@sinclair/typebox'
import { Event } from '../events/schema.ts'
import { OneOf, Text } from '../http/rules.ts'
import { closed, Nullable } from '../http/shapes.ts'

const Word = (maxLength: number) => Text({ minLength: 1, maxLength })
const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** What a subscription lets through: an event that each of these fits. */
export const Filters = Type.Object({
  /** Names or ids: the event is in one of these channels. */
  channels: Type.Optional(Type.Array(Word(255), { minItems: 1, maxItems: 50 })),
  /** The event has all of them. */
  tags: Type.Optional(Type.Array(Word(50), { minItems: 1, maxItems: 20 })),
  /** A user_id or an alias, as it is known when the event is sent. */
  userId: Type.Optional(Word(255)),
  source: Type.Optional(Word(100)),
  /** Words that begin words of title or description. */
  text: Type.Optional(Word(200)),
})
export type Filters = Static<typeof Filters>

/** Begins the stream of a project, or begins it anew. */
export const Subscribe = Type.Object({
  type: Type.Literal('subscribe'),
  project: Word(64),
  /** The last seq that the client has; 0 for all that is kept, null or nothing for what comes from now on. */
  after: Type.Optional(Nullable(Seq)),
  /** The epoch that `after` is from. */
  epoch: Type.Optional(Word(64)),
  filters: Type.Optional(Filters),
})
export type Subscribe = Static<typeof Subscribe>

export const Unsubscribe = Type.Object({
  type: Type.Literal('unsubscribe'),
  project: Word(64),
})

export const GAP_REASONS = ['retention', 'epoch', 'ahead'] as const
export type GapReason = (typeof GAP_REASONS)[number]

export const ERROR_CODES = ['not_found', 'invalid', 'too_many'] as const
export type ErrorCode = (typeof ERROR_CODES)[number]

const project = Type.String()

/** Everything that the server says. */
export const ServerMessage = Type.Union([
  /** First of all. `after` means something within one epoch alone. */
  Type.Object({ type: Type.Literal('hello'), epoch: Type.String({ format: 'uuid' }) }, closed),
  /** The stream begins. `recovered` says that nothing is missing between `after` and what follows. */
  Type.Object(
    { type: Type.Literal('subscribed'), project, head: Seq, recovered: Type.Boolean() },
    closed,
  ),
  Type.Object({ type: Type.Literal('event'), project, seq: Seq, event: Event }, closed),
  /** Somebody deleted an event that may have been sent before; `restored` takes it back. */
  Type.Object({ type: OneOf(['deleted', 'restored']), project, seq: Seq }, closed),
  Type.Object(
    { type: Type.Literal('gap'), project, reason: OneOf(GAP_REASONS), head: Seq },
    closed,
  ),
  /** Everything up to `head` that the filters let through has been sent. */
  Type.Object({ type: Type.Literal('heartbeat'), project, head: Seq }, closed),
  /** To a socket without any stream. */
  Type.Object({ type: Type.Literal('heartbeat') }, closed),
  /** What the person has read has changed, on any of their devices. */
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

/** Why the server closes a socket; beside these, what RFC 6455 says of a peer that breaks its rules. */
export const CLOSE = {
  /** The server stops: connect again, and be led to another. */
  stopping: [1001, 'The server is stopping'],
  /** A session has ended, or a project is no longer there for this person. */
  noAccess: [1008, 'Signed out, or no longer allowed to see this'],
  /** A bug of ours. */
  failed: [1011, 'Internal error'],
  /** The database was put back to an earlier state. */
  restored: [1012, 'The database was restored'],
  /** The client reads more slowly than events come: it may connect again with its cursor. */
  tooSlow: [1013, 'Too slow'],
  tooMany: [1013, 'Too many sockets'],
  /** Several messages that were none. */
  invalid: [4000, 'Too many invalid messages'],
  tooManyMessages: [4029, 'Too many messages'],
} as const satisfies Record<string, readonly [number, string]>

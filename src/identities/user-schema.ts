import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../http/paging.ts'
import { OneOf, Text } from '../http/rules.ts'
import { closed, Timestamp, Nullable } from '../http/schema-parts.ts'

const Properties = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
})

/** A user in a list. */
export const UserListItem = Type.Object(
  {
    id: Type.String(),
    userId: Type.String(),
    /** Null when longer than 4 KiB: the user's own page has them. */
    properties: Nullable(Properties),
    /** At most ten, oldest first. */
    aliases: Type.Array(Type.String(), { maxItems: 10 }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  closed,
)

export const UserQuery = Type.Object({
  /** The beginning of a user_id or an alias, or words in properties. */
  search: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  ...PageQuery.properties,
})
export type UserQuery = Static<typeof UserQuery>

/** A user's own page. A user whom only events name has no id, properties, aliases or times of creation and update. */
export const UserDetail = Type.Object(
  {
    id: Nullable(Type.String()),
    userId: Type.String(),
    properties: Nullable(Properties),
    /** At most 1,000, oldest first. */
    aliases: Type.Array(Type.Object({ alias: Type.String(), since: Timestamp }, closed)),
    createdAt: Nullable(Timestamp),
    updatedAt: Nullable(Timestamp),
    /** How many events name the user; 10,000 means 10,000 or more. */
    events: Type.Integer({ minimum: 0, maximum: 10_000 }),
    /** The earliest and the latest timestamp of all events. */
    firstSeenAt: Nullable(Timestamp),
    lastSeenAt: Nullable(Timestamp),
    /** The channels with the most of the counted events. */
    channels: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          icon: Nullable(Type.String()),
          events: Type.Integer({ minimum: 1 }),
        },
        closed,
      ),
      { maxItems: 10 },
    ),
  },
  closed,
)

/** A new alias of a user; with `from`, it is moved from that user. */
export const AliasInput = Type.Object({
  alias: Text({ minLength: 1, maxLength: 255 }),
  from: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
})
export type AliasInput = Static<typeof AliasInput>

export const UserAlias = Type.Object(
  { userId: Type.String(), alias: Type.String(), since: Timestamp },
  closed,
)
export type UserAlias = Static<typeof UserAlias>

export const RemovedAlias = Type.Object({ userId: Type.String(), alias: Type.String() }, closed)

/** One change of an alias of a user. */
export const AliasChange = Type.Object(
  {
    at: Timestamp,
    alias: Type.String(),
    change: OneOf(['added', 'removed', 'moved from', 'moved to']),
    /** The user_id that it was moved from or to. Null for other changes, and when that user was erased. */
    other: Nullable(Type.String()),
    /** The account that made the change in the dashboard. Null for an application, and for a deleted account. */
    person: Nullable(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
  },
  closed,
)
export type AliasChange = Static<typeof AliasChange>

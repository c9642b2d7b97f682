import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../../http/paging.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'

const Properties = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
})

/** A user in a list. */
export const UserListItem = Type.Object(
  {
    id: Type.String(),
    userId: Type.String(),
    /** Null when longer than 4 KiB. UserDetail has them. */
    properties: Nullable(Properties),
    /** The ten oldest, oldest first. */
    aliases: Type.Array(Type.String(), { maxItems: 10 }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  closed,
)

export const UserQuery = Type.Object({
  /** Words of the user_id, an alias or the properties, as `text` finds words of events. */
  search: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  ...PageQuery.properties,
})
export type UserQuery = Static<typeof UserQuery>

/**
 * Everything about a user. A user known only from events has no id, properties, aliases, createdAt
 * or updatedAt.
 */
export const UserDetail = Type.Object(
  {
    id: Nullable(Type.String()),
    userId: Type.String(),
    properties: Nullable(Properties),
    /** The 1,000 oldest, oldest first. */
    aliases: Type.Array(Type.Object({ alias: Type.String(), since: Timestamp }, closed)),
    createdAt: Nullable(Timestamp),
    updatedAt: Nullable(Timestamp),
    /** The number of the user's events; 10,000 means 10,000 or more. */
    events: Type.Integer({ minimum: 0, maximum: 10_000 }),
    /** The earliest and the latest timestamp of the user's events. */
    firstSeenAt: Nullable(Timestamp),
    lastSeenAt: Nullable(Timestamp),
    /** The ten channels with the most of these events. */
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

/** A new alias of a user. With `from`, it moves from that user. */
export const AliasInput = Type.Object(
  {
    alias: Text({ minLength: 1, maxLength: 255 }),
    from: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  },
  { examples: [{ alias: 'ada@example.com' }] },
)
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
    /**
     * The user_id from or to which it moved. Null for other changes, and when that user was erased.
     */
    other: Nullable(Type.String()),
    /**
     * The account that made the change in the dashboard. Null for a change by an application, or by
     * a deleted account.
     */
    person: Nullable(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
  },
  closed,
)
export type AliasChange = Static<typeof AliasChange>

/** The users whose names are wanted. */
export const UserNamesInput = Type.Object(
  { userIds: Type.Array(Text({ minLength: 1, maxLength: 255 }), { minItems: 1, maxItems: 100 }) },
  { ...closed, examples: [{ userIds: ['user_123', 'user_456'] }] },
)

/** The users that have a name, with it. */
export const UserNames = Type.Object(
  { items: Type.Array(Type.Object({ userId: Type.String(), name: Type.String() }, closed)) },
  closed,
)

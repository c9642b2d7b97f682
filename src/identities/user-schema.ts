import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../http/paging.ts'
import { OneOf, Text } from '../http/rules.ts'
import { closed, Moment, Nullable } from '../http/shapes.ts'

const Properties = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
})

/** A user in a list. */
export const UserRow = Type.Object(
  {
    id: Type.String(),
    userId: Type.String(),
    /** Null where they are more than 4 KiB: the user's own page has them. */
    properties: Nullable(Properties),
    /** At most ten, oldest first. */
    aliases: Type.Array(Type.String(), { maxItems: 10 }),
    createdAt: Moment,
    updatedAt: Moment,
  },
  closed,
)

export const UserQuery = Type.Object({
  /** The beginning of a user_id or an alias, or words in properties. */
  search: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  ...PageQuery.properties,
})
export type UserQuery = Static<typeof UserQuery>

/**
 * All about a user. Who was named by events but never identified has no id, properties or times of their own, and no
 * aliases.
 */
export const UserDetail = Type.Object(
  {
    id: Nullable(Type.String()),
    userId: Type.String(),
    properties: Nullable(Properties),
    /** At most 1,000, oldest first. */
    aliases: Type.Array(Type.Object({ alias: Type.String(), since: Moment }, closed)),
    createdAt: Nullable(Moment),
    updatedAt: Nullable(Moment),
    /** How many events name the user, counted up to 10,000: that many or more. */
    events: Type.Integer({ minimum: 0, maximum: 10_000 }),
    /** When the first and the last of all events happened. */
    firstSeenAt: Nullable(Moment),
    lastSeenAt: Nullable(Moment),
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

/** A new alias of a user; with `from`, one that is taken away from that user. */
export const AliasInput = Type.Object({
  alias: Text({ minLength: 1, maxLength: 255 }),
  from: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
})
export type AliasInput = Static<typeof AliasInput>

export const OwnAlias = Type.Object(
  { userId: Type.String(), alias: Type.String(), since: Moment },
  closed,
)
export type OwnAlias = Static<typeof OwnAlias>

export const RemovedAlias = Type.Object({ userId: Type.String(), alias: Type.String() }, closed)

/** Something that happened to an alias of a user. */
export const AliasChange = Type.Object(
  {
    at: Moment,
    alias: Type.String(),
    change: OneOf(['added', 'removed', 'moved from', 'moved to']),
    /** From or to whom it was moved; null for the rest, and where that user was erased. */
    other: Nullable(Type.String()),
    /** Who did it in the dashboard; null for an application, and for people who are gone. */
    person: Nullable(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
  },
  closed,
)
export type AliasChange = Static<typeof AliasChange>

/** Its cursor holds an alias. */
export const AliasHistoryQuery = Type.Object({
  ...PageQuery.properties,
  cursor: Type.Optional(Text({ minLength: 1, maxLength: 2_000 })),
})
export type AliasHistoryQuery = Static<typeof AliasHistoryQuery>

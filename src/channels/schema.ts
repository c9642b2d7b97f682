import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../http/paging.ts'
import { OneOf, Text } from '../http/rules.ts'
import { closed, Timestamp, Nullable } from '../http/schema-parts.ts'
import { Icon } from './icon.ts'
import { ChannelName } from './name.ts'

export const Channel = Type.Object(
  {
    id: Type.String({ examples: ['chn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String({
      description: 'The first spelling that was used, or the new name after a renaming.',
    }),
    icon: Nullable(Type.String()),
    createdAt: Timestamp,
  },
  { $id: 'Channel', additionalProperties: false },
)
export type Channel = Static<typeof Channel>

/** The days for which events are kept. */
const KeepDays = Type.Integer({ minimum: 1, maximum: 36_500 })

/** The number of unread events; 100 means 100 or more. */
const Unread = Type.Integer({ minimum: 0, maximum: 100 })

/** A channel as the dashboard shows it to one account. */
export const ProjectChannel = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    icon: Nullable(Type.String()),
    description: Nullable(Type.String()),
    isArchived: Type.Boolean(),
    /** Null takes the project's setting. */
    keepDays: Nullable(KeepDays),
    createdAt: Timestamp,
    /** Of the newest event; null where there is none. */
    lastSeq: Nullable(Type.Integer({ minimum: 1 })),
    lastEventAt: Nullable(Timestamp),
    unread: Unread,
    /** True if the account has muted its notifications at the moment. */
    isMuted: Type.Boolean(),
    /** Events in each of the last 24 hours (UTC), oldest first; the last is the current hour. */
    today: Type.Array(Type.Integer({ minimum: 0 }), { minItems: 24, maxItems: 24 }),
  },
  closed,
)
export type ProjectChannel = Static<typeof ProjectChannel>

export const ProjectChannelQuery = Type.Object({
  ...PageQuery.properties,
  archived: Type.Optional(OneOf(['true', 'false'], 'Whether to list archived channels, too.')),
  search: Type.Optional(
    Text({ minLength: 1, maxLength: 255, description: 'A part of the name, in any case.' }),
  ),
})
export type ProjectChannelQuery = Static<typeof ProjectChannelQuery>

/** A page of channels; `total` counts those of all pages. */
export const ProjectChannels = Type.Object(
  {
    items: Type.Array(ProjectChannel),
    nextCursor: Nullable(Type.String()),
    total: Type.Integer({ minimum: 0 }),
  },
  closed,
)
export type ProjectChannels = Static<typeof ProjectChannels>

/** The settings of a channel; those that are absent stay. */
export const ChannelEdit = Type.Object({
  name: Type.Optional(ChannelName),
  icon: Type.Optional(Nullable(Icon)),
  description: Type.Optional(Nullable(Text({ maxLength: 1_000 }))),
  isArchived: Type.Optional(Type.Boolean()),
  keepDays: Type.Optional(Nullable(KeepDays)),
})
export type ChannelEdit = Static<typeof ChannelEdit>

/** How far an account has read one channel, or all of them without a channelId. */
export const ReadMarkInput = Type.Object({
  channelId: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
})
export type ReadMarkInput = Static<typeof ReadMarkInput>

/** Where the read mark is now. */
export const ReadMark = Type.Object({ seq: Type.Integer({ minimum: 0 }) }, closed)

/** The channels with unread events, without archived ones; `total` is their sum, up to 1,000. */
export const UnreadCounts = Type.Object(
  {
    total: Type.Integer({ minimum: 0, maximum: 1_000 }),
    channels: Type.Array(Type.Object({ id: Type.String(), unread: Unread }, closed)),
  },
  closed,
)
export type UnreadCounts = Static<typeof UnreadCounts>

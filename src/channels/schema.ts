import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../http/paging.ts'
import { OneOf, Text } from '../http/rules.ts'
import { closed, Moment, Nullable } from '../http/shapes.ts'
import { Icon } from './icon.ts'
import { ChannelName } from './name.ts'

export const Channel = Type.Object(
  {
    id: Type.String({ examples: ['chn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String({
      description: 'The first spelling that was used, unless people renamed it.',
    }),
    icon: Nullable(Type.String()),
    createdAt: Moment,
  },
  { $id: 'Channel', additionalProperties: false },
)
export type Channel = Static<typeof Channel>

/** Days for which events are kept. */
const KeepDays = Type.Integer({ minimum: 1, maximum: 36_500 })

/** How many events are unread, counted up to 100: that many or more. */
const Unread = Type.Integer({ minimum: 0, maximum: 100 })

/** A channel as the dashboard shows it to one person. */
export const ProjectChannel = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    icon: Nullable(Type.String()),
    description: Nullable(Type.String()),
    isArchived: Type.Boolean(),
    /** Null for as long as the project says. */
    keepDays: Nullable(KeepDays),
    createdAt: Moment,
    /** Of the newest event; null where there is none. */
    lastSeq: Nullable(Type.Integer({ minimum: 1 })),
    lastEventAt: Nullable(Moment),
    unread: Unread,
    /** Whether the person wants none of its notifications at the moment. */
    isMuted: Type.Boolean(),
    /** Events in each of the last 24 hours (UTC), oldest first; the last one is the hour that is running. */
    today: Type.Array(Type.Integer({ minimum: 0 }), { minItems: 24, maxItems: 24 }),
  },
  closed,
)
export type ProjectChannel = Static<typeof ProjectChannel>

export const ProjectChannelQuery = Type.Object({
  ...PageQuery.properties,
  archived: Type.Optional(OneOf(['true', 'false'], 'Whether archived channels are listed, too.')),
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

/** What people may change of a channel; what is absent stays. */
export const ChannelEdit = Type.Object({
  name: Type.Optional(ChannelName),
  icon: Type.Optional(Nullable(Icon)),
  description: Type.Optional(Nullable(Text({ maxLength: 1_000 }))),
  isArchived: Type.Optional(Type.Boolean()),
  keepDays: Type.Optional(Nullable(KeepDays)),
})
export type ChannelEdit = Static<typeof ChannelEdit>

/** How far somebody has read: one channel, or all of them where none is named. */
export const ReadInput = Type.Object({
  channelId: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
  seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
})
export type ReadInput = Static<typeof ReadInput>

/** How far somebody has read now. */
export const ReadMark = Type.Object({ seq: Type.Integer({ minimum: 0 }) }, closed)

/** What a person has not read: the channels that have something, archived ones aside, and their sum up to 1,000. */
export const UnreadCounts = Type.Object(
  {
    total: Type.Integer({ minimum: 0, maximum: 1_000 }),
    channels: Type.Array(Type.Object({ id: Type.String(), unread: Unread }, closed)),
  },
  closed,
)
export type UnreadCounts = Static<typeof UnreadCounts>

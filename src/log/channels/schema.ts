import { Type, type Static } from '@sinclair/typebox'
import { PageQuery } from '../../http/paging.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { Escalation } from './escalation-schema.ts'
import { Icon } from './icon.ts'
import { LEVELS } from './level.ts'
import { ChannelName } from './name.ts'

export const Channel = Type.Object(
  {
    id: Type.String({ examples: ['chn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String({
      description: 'The name as first sent, or the new name after a rename.',
    }),
    icon: Nullable(Type.String()),
    createdAt: Timestamp,
  },
  { $id: 'Channel', additionalProperties: false },
)
export type Channel = Static<typeof Channel>

/** The number of days for which events are kept. */
const KeepDays = Type.Integer({ minimum: 1, maximum: 36_500 })

/** The level of a channel. */
const DefaultLevel = OneOf(LEVELS, 'The level of events that are sent without one.')

/** The number of unread events; 100 means 100 or more. */
const Unread = Type.Integer({ minimum: 0, maximum: 100 })

/** A channel as the dashboard shows it to one account. */
export const ProjectChannel = Type.Object(
  {
    id: Type.String(),
    slug: Type.String({
      description:
        'Its first name in lower case. Events find the channel by it, also after a rename.',
    }),
    name: Type.String(),
    icon: Nullable(Type.String()),
    description: Nullable(Type.String()),
    isArchived: Type.Boolean(),
    /** Null uses the project's setting. */
    keepDays: Nullable(KeepDays),
    level: DefaultLevel,
    escalation: Nullable(Escalation, 'How members are told of its alarms. Null for the defaults.'),
    createdAt: Timestamp,
    /** The seq of the newest event; null when there is none. */
    lastSeq: Nullable(Type.Integer({ minimum: 1 })),
    lastEventAt: Nullable(Timestamp, 'The latest `timestamp` of its newest events.'),
    unread: Unread,
    /** True while the account has muted the channel's notifications. */
    isMuted: Type.Boolean(),
    /**
     * The number of events in each of the last 24 hours (UTC). The last one is the current hour.
     */
    today: Type.Array(Type.Integer({ minimum: 0 }), { minItems: 24, maxItems: 24 }),
  },
  closed,
)
export type ProjectChannel = Static<typeof ProjectChannel>

export const ProjectChannelQuery = Type.Object({
  ...PageQuery.properties,
  archived: Type.Optional(OneOf(['true', 'false'], 'Set to `true` to include archived channels.')),
  search: Type.Optional(
    Text({
      minLength: 1,
      maxLength: 255,
      description: 'A part of the name. Case and accents do not matter.',
    }),
  ),
})
export type ProjectChannelQuery = Static<typeof ProjectChannelQuery>

/** A page of channels. `total` counts those of all pages, `alarms` what needs a member. */
export const ProjectChannels = Type.Object(
  {
    items: Type.Array(ProjectChannel),
    nextCursor: Nullable(Type.String()),
    total: Type.Integer({ minimum: 0 }),
    alarms: Type.Integer({
      minimum: 0,
      description:
        'The threads that are firing and that nobody has acknowledged, and the questions that wait, up to 100 of each.',
    }),
  },
  closed,
)
export type ProjectChannels = Static<typeof ProjectChannels>

/** Changes to the settings of a channel. Absent settings stay as they are. */
export const ChannelEdit = Type.Object(
  {
    name: Type.Optional(ChannelName),
    icon: Type.Optional(Nullable(Icon)),
    description: Type.Optional(Nullable(Text({ maxLength: 1_000 }))),
    isArchived: Type.Optional(Type.Boolean()),
    keepDays: Type.Optional(Nullable(KeepDays)),
    level: Type.Optional(DefaultLevel),
    escalation: Type.Optional(Nullable(Escalation)),
  },
  { examples: [{ name: 'Payments', icon: '💰', keepDays: 30 }] },
)
export type ChannelEdit = Static<typeof ChannelEdit>

/** A channel to create before its first event. */
export const NewChannel = Type.Object(
  { ...ChannelEdit.properties, name: ChannelName },
  { examples: [{ name: 'payments', icon: '💰' }] },
)
export type NewChannel = Static<typeof NewChannel>

/** How far an account has read a channel; without a channelId, all channels. */
export const ReadMarkInput = Type.Object(
  {
    channelId: Type.Optional(Text({ minLength: 1, maxLength: 255 })),
    seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  },
  { examples: [{ channelId: 'chn_01kadz5p6vf2w8y3m4n5q6r7s8', seq: 42 }] },
)
export type ReadMarkInput = Static<typeof ReadMarkInput>

/** The read mark after the change. */
export const ReadMark = Type.Object({ seq: Type.Integer({ minimum: 0 }) }, closed)

/** The channels with unread events, except archived ones. `total` is their sum, up to 1,000. */
export const UnreadCounts = Type.Object(
  {
    total: Type.Integer({ minimum: 0, maximum: 1_000 }),
    channels: Type.Array(Type.Object({ id: Type.String(), unread: Unread }, closed)),
  },
  closed,
)
export type UnreadCounts = Static<typeof UnreadCounts>

import { Type, type Static } from '@sinclair/typebox'
import { OneOf } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { IsoTimestamp } from '../../log/events/schema.ts'

const STATES = ['on', 'mute'] as const
const Until = Type.Optional(
  Nullable(IsoTimestamp('When the mute ends. Without it, the mute does not end.')),
)
const COLLAPSE =
  'Replaces notifications beyond 10 a minute from one channel with one that counts the rest.'

/**
 * Settings for the channels of a project that have none of their own. If `collapse` is absent, it
 * stays unchanged.
 */
export const DefaultNotificationSettingsInput = Type.Object(
  {
    state: OneOf(STATES),
    muteUntil: Until,
    collapse: Type.Optional(Type.Boolean({ description: COLLAPSE })),
  },
  { examples: [{ state: 'mute', muteUntil: '2026-11-23T08:00:00Z' }] },
)
export type DefaultNotificationSettingsInput = Static<typeof DefaultNotificationSettingsInput>

export const ChannelNotificationSettingsInput = Type.Object(
  {
    state: OneOf([...STATES, 'default'], 'default: the state of the project.'),
    muteUntil: Until,
    collapse: Type.Optional(
      Nullable(Type.Boolean(), `${COLLAPSE} null: the setting of the project.`),
    ),
  },
  { examples: [{ state: 'default' }] },
)
export type ChannelNotificationSettingsInput = Static<typeof ChannelNotificationSettingsInput>

const setting = {
  state: OneOf(STATES),
  muteUntil: Nullable(Timestamp),
  collapse: Type.Boolean({ description: COLLAPSE }),
}

/** Settings for the channels of a project that have none of their own. */
export const DefaultNotificationSettings = Type.Object(setting, closed)
export type DefaultNotificationSettings = Static<typeof DefaultNotificationSettings>

/** The settings of a channel. Each is its own or that of the project. */
export const ChannelNotificationSettings = Type.Object(
  {
    channelId: Type.String(),
    isDefault: Type.Boolean({ description: 'True if the state is that of the project.' }),
    isCollapseDefault: Type.Boolean({ description: 'True if `collapse` is that of the project.' }),
    ...setting,
  },
  closed,
)
export type ChannelNotificationSettings = Static<typeof ChannelNotificationSettings>

export const NotificationSettingsPage = Type.Object(
  {
    default: DefaultNotificationSettings,
    items: Type.Array(ChannelNotificationSettings),
    nextCursor: Nullable(Type.String()),
  },
  closed,
)
export type NotificationSettingsPage = Static<typeof NotificationSettingsPage>

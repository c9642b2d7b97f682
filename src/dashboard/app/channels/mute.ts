import type {
  ChannelNotificationSettingsInput as SettingChange,
  DefaultNotificationSettings,
} from '../../../delivery/push/notification-schema.ts'

/** A member's settings for a project or channel; for a channel, with the inherited ones marked. */
export type Setting = DefaultNotificationSettings & {
  isDefault?: boolean
  isCollapseDefault?: boolean
}
export type { SettingChange }

const HOUR_MS = 3_600_000
/** The hour at which "until tomorrow" ends. */
const MORNING_H = 8

/** The durations of a mute, besides forever. */
export const MUTE_DURATIONS = [
  { value: 'hour', text: 'Mute for 1 hour' },
  { value: 'hours', text: 'Mute for 8 hours' },
  { value: 'morning', text: 'Mute until tomorrow' },
  { value: 'week', text: 'Mute for 1 week' },
] as const
export type MuteDuration = (typeof MUTE_DURATIONS)[number]['value']

/** The end of a mute that starts at `nowMs`, in local time. */
export function toMuteEnd(span: MuteDuration, nowMs: number): number {
  if (span === 'hour') return nowMs + HOUR_MS
  if (span === 'hours') return nowMs + 8 * HOUR_MS
  const day = new Date(nowMs)
  day.setDate(day.getDate() + (span === 'week' ? 7 : 1))
  if (span === 'morning') day.setHours(MORNING_H, 0, 0, 0)
  return day.getTime()
}

/** The request that restores a setting. */
export function toSettingChange({
  isDefault,
  state,
  muteUntil,
  isCollapseDefault,
  collapse,
}: Setting): SettingChange {
  return {
    ...(isDefault ? { state: 'default' } : { state, ...(muteUntil !== null && { muteUntil }) }),
    collapse: isCollapseDefault ? null : collapse,
  }
}

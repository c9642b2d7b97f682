import type { Setting, SettingChange } from './api.ts'

const HOUR_MS = 3_600_000
/** When people start to look at their messages again. */
const MORNING_H = 8

/** For how long somebody can be left alone, beside for good. */
export const MUTE_DURATIONS = [
  { value: 'hour', text: 'Mute for an hour' },
  { value: 'hours', text: 'Mute for 8 hours' },
  { value: 'morning', text: 'Mute until 8 tomorrow morning' },
  { value: 'week', text: 'Mute for a week' },
] as const
export type MuteDuration = (typeof MUTE_DURATIONS)[number]['value']

/** When a mute that begins now ends, by the reader's clock. */
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

import { showToast } from '../components/toast.tsx'
import { changeSetting, readSetting } from './api.ts'
import { toSettingChange } from './mute.ts'

/** Turns notifications of a channel on or off, and shows `message` with an offer to undo it. */
export async function setNotifications(
  project: string,
  channel: string,
  state: 'on' | 'mute',
  message: string,
): Promise<void> {
  const before = await readSetting(project, channel)
  if (!before.ok) return showToast({ message: before.failure.message })
  const result = await changeSetting(project, channel, { state })
  if (!result.ok) return showToast({ message: result.failure.message })
  showToast({
    message,
    undo: () => changeSetting(project, channel, toSettingChange(before.data)),
  })
}

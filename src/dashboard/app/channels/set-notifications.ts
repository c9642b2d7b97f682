import { showResult } from '../components/toast.tsx'
import { changeSetting, readSetting, type SettingChange } from './api.ts'
import { toSettingChange } from './mute.ts'

/** Changes the notifications of a channel, and shows `message` with an offer to undo it. */
export async function setNotifications(
  project: string,
  channel: string,
  change: SettingChange,
  message: string,
): Promise<void> {
  const before = await readSetting(project, channel)
  if (!showResult(before)) return
  showResult(await changeSetting(project, channel, change), {
    message,
    undo: () => changeSetting(project, channel, toSettingChange(before.data)),
  })
}

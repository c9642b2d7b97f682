import type { Static } from '@sinclair/typebox'
import type {
  ChannelNotificationSettingsInput,
  DefaultNotificationSettings,
  NotificationSettingsPage,
} from '../../../delivery/push/notification-schema.ts'
import type { ChannelEdit, ProjectChannel } from '../../../log/channels/schema.ts'
import { toApiPath } from '../api-paths.ts'
import { channelChanges } from '../feed/use-channels.ts'
import { request, type Result } from '../request.ts'

/** A member's settings for a project or channel; for a channel, with the inherited ones marked. */
export type Setting = DefaultNotificationSettings & {
  isDefault?: boolean
  isCollapseDefault?: boolean
}
export type SettingChange = Static<typeof ChannelNotificationSettingsInput>

export function readChannel(project: string, channel: string): Promise<Result<ProjectChannel>> {
  return request('GET', toChannelApiPath(project, channel))
}

export function editChannel(
  project: string,
  channel: string,
  edit: ChannelEdit,
): Promise<Result<ProjectChannel>> {
  return countChange(request('PATCH', toChannelApiPath(project, channel), edit))
}

/** The signed-in member's settings for a channel, or for the project if `channel` is undefined. */
export async function readSetting(
  project: string,
  channel: string | undefined,
): Promise<Result<Setting>> {
  if (channel !== undefined) {
    return request('GET', `${toChannelApiPath(project, channel)}/notifications`)
  }
  const result = await request<NotificationSettingsPage>(
    'GET',
    `${toApiPath(project)}/notifications?limit=1`,
  )
  return result.ok ? { ok: true, data: result.data.default } : result
}

export function changeSetting(
  project: string,
  channel: string | undefined,
  change: SettingChange,
): Promise<Result<Setting>> {
  const path = channel === undefined ? toApiPath(project) : toChannelApiPath(project, channel)
  return countChange(request('PUT', `${path}/notifications`, change))
}

async function countChange<Data>(sent: Promise<Result<Data>>): Promise<Result<Data>> {
  const result = await sent
  if (result.ok) channelChanges.value += 1
  return result
}

function toChannelApiPath(project: string, channel: string): `/api/${string}` {
  return `${toApiPath(project)}/channels/${encodeURIComponent(channel)}`
}

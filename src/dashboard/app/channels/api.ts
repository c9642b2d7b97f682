import type { Static } from '@sinclair/typebox'
import type { ChannelEdit, ProjectChannel } from '../../../channels/schema.ts'
import type {
  ChannelNotificationSettingsInput,
  DefaultNotificationSettings,
  NotificationSettingsPage,
} from '../../../push/schema.ts'
import { toApiPath } from '../feed/api.ts'
import { channelChanges } from '../feed/use-channels.ts'
import { request, type Result } from '../request.ts'

/** The reader's settings for a channel or the project; a channel says which of them are those of the project. */
export type Setting = DefaultNotificationSettings & {
  isDefault?: boolean
  isCollapseDefault?: boolean
}
export type SettingChange = Static<typeof ChannelNotificationSettingsInput>

export function readChannel(project: string, channel: string): Promise<Result<ProjectChannel>> {
  return request('GET', toChannelCall(project, channel))
}

export function editChannel(
  project: string,
  channel: string,
  edit: ChannelEdit,
): Promise<Result<ProjectChannel>> {
  return done(request('PATCH', toChannelCall(project, channel), edit))
}

/** The reader's settings for a channel; without one, for the project. */
export async function readSetting(
  project: string,
  channel: string | undefined,
): Promise<Result<Setting>> {
  if (channel !== undefined) {
    return request('GET', `${toChannelCall(project, channel)}/notifications`)
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
  wish: SettingChange,
): Promise<Result<Setting>> {
  const path = channel === undefined ? toApiPath(project) : toChannelCall(project, channel)
  return done(request('PUT', `${path}/notifications`, wish))
}

async function done<Data>(asked: Promise<Result<Data>>): Promise<Result<Data>> {
  const result = await asked
  if (result.ok) channelChanges.value += 1
  return result
}

function toChannelCall(project: string, channel: string): `/api/${string}` {
  return `${toApiPath(project)}/channels/${encodeURIComponent(channel)}`
}

import type { Static } from '@sinclair/typebox'
import type { ChannelEdit, ProjectChannel } from '../../../channels/schema.ts'
import type {
  ChannelNotificationInput,
  Notification,
  NotificationSettings,
} from '../../../push/schema.ts'
import { toPath } from '../feed/calls.ts'
import { channelDeeds } from '../feed/use-channels.ts'
import { request, type Answer } from '../request.ts'

/** The reader's settings for a channel or the project; a channel says which of them are those of the project. */
export type Setting = Notification & { isDefault?: boolean; isCollapseDefault?: boolean }
export type Wish = Static<typeof ChannelNotificationInput>

export function readChannel(project: string, channel: string): Promise<Answer<ProjectChannel>> {
  return request('GET', toChannelCall(project, channel))
}

export function editChannel(
  project: string,
  channel: string,
  edit: ChannelEdit,
): Promise<Answer<ProjectChannel>> {
  return done(request('PATCH', toChannelCall(project, channel), edit))
}

/** The reader's settings for a channel; without one, for the project. */
export async function readSetting(
  project: string,
  channel: string | undefined,
): Promise<Answer<Setting>> {
  if (channel !== undefined) {
    return request('GET', `${toChannelCall(project, channel)}/notifications`)
  }
  const answer = await request<NotificationSettings>(
    'GET',
    `${toPath(project)}/notifications?limit=1`,
  )
  return answer.ok ? { ok: true, data: answer.data.default } : answer
}

export function changeSetting(
  project: string,
  channel: string | undefined,
  wish: Wish,
): Promise<Answer<Setting>> {
  const path = channel === undefined ? toPath(project) : toChannelCall(project, channel)
  return done(request('PUT', `${path}/notifications`, wish))
}

async function done<Data>(asked: Promise<Answer<Data>>): Promise<Answer<Data>> {
  const answer = await asked
  if (answer.ok) channelDeeds.value += 1
  return answer
}

function toChannelCall(project: string, channel: string): `/api/${string}` {
  return `${toPath(project)}/channels/${encodeURIComponent(channel)}`
}

import type { ChannelEdit } from '../../../log/channels/schema.ts'
import { channelChanges } from '../feed/use-channels.ts'
import { request, type Result } from '../request.ts'
import { showResult } from '../components/toast.tsx'
import { toSettingChange, type Setting, type SettingChange } from './mute.ts'

export function editChannel(projectId: string, channelId: string, edit: ChannelEdit) {
  const place = { projectId, channelId }
  return countChange(
    request('PATCH /api/projects/:projectId/channels/:channelId', { ...place, ...edit }),
  )
}

/** The signed-in member's settings for a channel, or for the project without one. */
export async function readSetting(
  projectId: string,
  channelId: string | undefined,
): Promise<Result<Setting>> {
  if (channelId !== undefined) {
    const place = { projectId, channelId }
    return request('GET /api/projects/:projectId/channels/:channelId/notifications', place)
  }
  const place = { projectId, limit: 1 }
  const result = await request('GET /api/projects/:projectId/notifications', place)
  return result.ok ? { ok: true, data: result.data.default } : result
}

export function changeSetting(
  projectId: string,
  channelId: string | undefined,
  change: SettingChange,
): Promise<Result<Setting>> {
  // The server refuses for a project what only a channel can inherit.
  const name =
    channelId === undefined
      ? 'PUT /api/projects/:projectId/notifications'
      : 'PUT /api/projects/:projectId/channels/:channelId/notifications'
  const sent = request(
    name as 'PUT /api/projects/:projectId/channels/:channelId/notifications',
    {
      projectId,
      ...(channelId !== undefined && { channelId }),
      ...change,
    } as { projectId: string; channelId: string } & SettingChange,
  )
  return countChange(sent)
}

async function countChange<Data>(sent: Promise<Result<Data>>): Promise<Result<Data>> {
  const result = await sent
  if (result.ok) channelChanges.value += 1
  return result
}

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

/** Mutes a channel for the signed-in member, or ends that. Offers to undo it. */
export function switchMute(
  project: string,
  { id, name, isMuted }: { id: string; name: string; isMuted: boolean },
): Promise<void> {
  const message = isMuted
    ? `${name} notifies you again.`
    : `${name} is muted for you. Critical events pass if allowed.`
  return setNotifications(project, id, { state: isMuted ? 'on' : 'mute' }, message)
}

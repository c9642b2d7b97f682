import { Elysia } from 'elysia'
import { toReaderId } from '../../access/guard/caller.ts'
import { succeedRead, type CallOn, type SessionGuard } from '../../access/guard/guard.ts'
import { requireVerified, type Verifiable } from '../../access/guard/authorize.ts'
import { isAtLeast, type Role } from '../../access/guard/permissions.ts'
import { Fault } from '../../base/errors.ts'
import type { Hints } from '../../base/hints.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { QuotaLimits } from '../../base/config.ts'
import {
  createChannel,
  editChannel,
  getProjectChannel,
  listProjectChannels,
  type Reader,
} from './channels.ts'
import {
  ChannelEdit,
  NewChannel,
  ProjectChannel,
  ProjectChannelQuery,
  ProjectChannels,
  ReadMarkInput,
  ReadMark,
  UnreadCounts,
} from './schema.ts'
import { getUnread, markRead } from './unread.ts'

const tags = ['Channels']

/** The dependencies of the routes of channels under /api. */
export interface ProjectChannelParts {
  guard: SessionGuard
  hints: Hints
  quotaLimits: Pick<QuotaLimits, 'channels'>
}

/** Routes of the dashboard for channels, their settings, and what each account has read. */
export function projectChannelRoutes({ guard, hints, quotaLimits }: ProjectChannelParts) {
  return new Elysia({ name: 'channels.project' })
    .use(guard)
    .get(
      '/api/projects/:projectId/channels',
      ({ call, query }) =>
        succeedRead(call, sql => listProjectChannels(sql, toReader(call), query)),
      {
        project: 'channels.read',
        query: ProjectChannelQuery,
        response: { 200: SuccessOf(ProjectChannels) },
        detail: { operationId: 'listProjectChannels', summary: 'List channels', tags },
      },
    )
    .post(
      '/api/projects/:projectId/channels',
      async ({ call, body: channel }) => {
        const { actor, organizationId, projectId } = call
        if (channel.keepDays !== undefined) checkRetentionChange(call, channel.keepDays)
        const created = await transact(call.pool, async tx => {
          const maxChannels = quotaLimits.channels
          const target = { organizationId, projectId, channel, maxChannels }
          const id = await createChannel(tx, actor, target)
          return getProjectChannel(tx, toReader(call), id)
        })
        return succeed(call, 201, created)
      },
      {
        project: 'channels.create',
        body: NewChannel,
        response: { 201: SuccessOf(ProjectChannel, 'The channel, which has no events yet.') },
        detail: {
          operationId: 'createChannel',
          summary: 'Create a channel before its first event',
          description: 'An event creates its channel, too. A name that is taken is a conflict.',
          tags,
        },
      },
    )
    .get(
      '/api/projects/:projectId/channels/:channelId',
      ({ call, params: { channelId } }) =>
        succeedRead(call, sql => getProjectChannel(sql, toReader(call), channelId)),
      {
        project: 'channels.read',
        response: { 200: SuccessOf(ProjectChannel) },
        detail: { operationId: 'getProjectChannel', summary: 'Get a channel', tags },
      },
    )
    .patch(
      '/api/projects/:projectId/channels/:channelId',
      async ({ call, params: { channelId: id }, body: edit }) => {
        const { actor, organizationId, projectId } = call
        if (edit.keepDays !== undefined) checkRetentionChange(call, edit.keepDays)
        const channel = await transact(call.pool, async tx => {
          await editChannel(tx, actor, { organizationId, projectId, id, edit })
          return getProjectChannel(tx, toReader(call), id)
        })
        return succeed(call, 200, channel)
      },
      {
        project: 'channels.edit',
        body: ChannelEdit,
        response: { 200: SuccessOf(ProjectChannel) },
        detail: { operationId: 'editChannel', summary: 'Change the settings of a channel', tags },
      },
    )
    .put(
      '/api/projects/:projectId/read',
      async ({ call, body }) => {
        // Not in the audit log: it changes nothing for other members, and is frequent.
        const reader = toReader(call)
        const seq = await call.pool.run(sql => markRead(sql, reader, body))
        hints.send([{ kind: 'unread', projectId: call.projectId, accountId: reader.accountId }])
        return succeed(call, 200, { seq })
      },
      {
        project: 'events.markRead',
        body: ReadMarkInput,
        response: { 200: SuccessOf(ReadMark) },
        detail: { operationId: 'markRead', summary: 'Mark events as read', tags },
      },
    )
    .get(
      '/api/projects/:projectId/unread',
      ({ call }) => succeedRead(call, sql => getUnread(sql, toReader(call))),
      {
        project: 'events.read',
        response: { 200: SuccessOf(UnreadCounts) },
        detail: { operationId: 'getUnread', summary: 'Count unread events', tags },
      },
    )
}

function toReader({ projectId, admitted }: CallOn<'project'>): Reader {
  return { projectId, accountId: toReaderId(admitted) }
}

/**
 * Retention deletes events. So a change requires an admin, and the password unless it is lifted.
 */
function checkRetentionChange(
  { role, admitted }: { role: Role; admitted: Verifiable },
  keepDays: number | null,
): void {
  if (!isAtLeast(role, 'admin')) {
    throw new Fault(
      'forbidden',
      `Changing how long events are kept requires the admin role; you are a ${role}.`,
    )
  }
  if (keepDays !== null) requireVerified(admitted)
}

import { Elysia } from 'elysia'
import type { CallOn, SessionGuard } from '../accounts/guard.ts'
import { isAtLeast, requireVerified, type Role } from '../accounts/permissions.ts'
import { type Pool, transact } from '../db/pool.ts'
import { Fault } from '../errors.ts'
import type { Hints } from '../hints.ts'
import { succeed } from '../http/call.ts'
import { SuccessOf } from '../http/envelope.ts'
import { editChannel, getProjectChannel, listProjectChannels, type Reader } from './channels.ts'
import {
  ChannelEdit,
  ProjectChannel,
  ProjectChannelQuery,
  ProjectChannels,
  ReadMarkInput,
  ReadMark,
  UnreadCounts,
} from './schema.ts'
import { getUnread, markRead } from './unread.ts'

const tags = ['Channels']

interface Parts {
  guard: SessionGuard
  pool: Pool
  hints: Hints
}

/** The channels of a project as members see and set them, and what each member has read. */
export function projectChannelRoutes({ guard, pool, hints }: Parts) {
  return new Elysia({ name: 'channels.project' })
    .use(guard)
    .get(
      '/api/projects/:projectId/channels',
      async ({ call, query }) =>
        succeed(call, 200, await pool.run(sql => listProjectChannels(sql, toReader(call), query))),
      {
        project: 'channels.read',
        query: ProjectChannelQuery,
        response: { 200: SuccessOf(ProjectChannels) },
        detail: { operationId: 'listProjectChannels', summary: 'List channels', tags },
      },
    )
    .get(
      '/api/projects/:projectId/channels/:channelId',
      async ({ call, params: { channelId } }) =>
        succeed(
          call,
          200,
          await pool.run(sql => getProjectChannel(sql, toReader(call), channelId)),
        ),
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
        const channel = await transact(pool, async tx => {
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
        // No entry in the audit log: it changes nothing for other members, and comes with every look at a channel.
        const reader = toReader(call)
        const seq = await pool.run(sql => markRead(sql, reader, body))
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
      async ({ call }) => succeed(call, 200, await pool.run(sql => getUnread(sql, toReader(call)))),
      {
        project: 'events.read',
        response: { 200: SuccessOf(UnreadCounts) },
        detail: { operationId: 'getUnread', summary: 'Count unread events', tags },
      },
    )
}

function toReader({ projectId, admitted }: CallOn<'project'>): Reader {
  return { projectId, accountId: admitted.account.id }
}

/** How long events are kept is no setting like the others: it deletes events, which takes an admin and the password. */
function checkRetentionChange(
  { role, admitted }: { role: Role; admitted: { isVerified: boolean } },
  keepDays: number | null,
): void {
  if (!isAtLeast(role, 'admin')) {
    throw new Fault(
      'forbidden',
      `To say how long events are kept takes the role admin; yours is ${role}`,
    )
  }
  if (keepDays !== null) requireVerified(admitted)
}

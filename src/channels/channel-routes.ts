import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { isAtLeast, requireVerified, type Role } from '../accounts/permissions.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import type { Hints } from '../hints.ts'
import {
  ChannelEdit,
  ProjectChannel,
  ProjectChannelQuery,
  ProjectChannels,
  ReadInput,
  ReadMark,
  UnreadCounts,
} from './schema.ts'
import { editChannel, getProjectChannel, listProjectChannels } from './settings.ts'
import { getUnread, markRead, type Reader } from './unread.ts'

/** The channels of a project as people see and set them, and what each person has read. */
export function projectChannelRoutes({ pool, hints }: { pool: Pool; hints: Hints }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/channels',
      action: 'channels.read',
      query: ProjectChannelQuery,
      success: { status: 200, data: ProjectChannels },
      handle: async ({ query, ...call }) =>
        JSON.stringify(await pool.run(sql => listProjectChannels(sql, toReader(call), query))),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/channels/:channelId',
      action: 'channels.read',
      success: { status: 200, data: ProjectChannel },
      handle: async ({ params, ...call }) =>
        JSON.stringify(
          await pool.run(sql => getProjectChannel(sql, toReader(call), params['channelId'] ?? '')),
        ),
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/projects/:projectId/channels/:channelId',
      action: 'channels.edit',
      body: ChannelEdit,
      success: { status: 200, data: ProjectChannel },
      async handle({ actor, organizationId, projectId, params, body, admitted, role }) {
        const id = params['channelId'] ?? ''
        if (body.keepDays !== undefined) checkKeeping(role, admitted, body.keepDays)
        const channel = await transact(pool, async tx => {
          await editChannel(tx, actor, { organizationId, projectId, id, edit: body })
          return getProjectChannel(tx, { projectId, personId: admitted.person.id }, id)
        })
        return JSON.stringify(channel)
      },
    }),
    apiEndpoint({
      method: 'PUT',
      path: '/api/projects/:projectId/read',
      action: 'events.markRead',
      body: ReadInput,
      success: { status: 200, data: ReadMark },
      async handle({ body, ...call }) {
        // No entry in the audit log: it changes nothing for anybody else, and comes with every look at a channel.
        const reader = toReader(call)
        const seq = await pool.run(sql => markRead(sql, reader, body))
        hints.tell([{ kind: 'unread', ...reader }])
        return JSON.stringify({ seq })
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/unread',
      action: 'events.read',
      success: { status: 200, data: UnreadCounts },
      handle: async call => JSON.stringify(await pool.run(sql => getUnread(sql, toReader(call)))),
    }),
  ]
}

function toReader(call: { projectId: string; admitted: { person: { id: string } } }): Reader {
  return { projectId: call.projectId, personId: call.admitted.person.id }
}

/** How long events are kept is no setting like the others: it deletes events, which takes an admin and the password. */
function checkKeeping(
  role: Role,
  admitted: { isVerified: boolean },
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

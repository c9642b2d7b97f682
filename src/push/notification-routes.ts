import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import type { Actor } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { PageQuery } from '../http/paging.ts'
import {
  getChannel,
  getNotifications,
  setChannel,
  setDefault,
  type Wisher,
} from './notifications.ts'
import {
  ChannelNotification,
  ChannelNotificationInput,
  Notification,
  NotificationInput,
  NotificationSettings,
} from './schema.ts'

/** What a person wants to be notified of in a project: everybody decides for themselves. */
export function notificationRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/notifications',
      action: 'notifications.read',
      query: PageQuery,
      success: { status: 200, data: NotificationSettings },
      handle: async call =>
        JSON.stringify(await pool.run(sql => getNotifications(sql, toWisher(call), call.query))),
    }),
    apiEndpoint({
      method: 'PUT',
      path: '/api/projects/:projectId/notifications',
      action: 'notifications.edit',
      body: NotificationInput,
      success: { status: 200, data: Notification },
      handle: async call =>
        JSON.stringify(await transact(pool, tx => setDefault(tx, toWisher(call), call.body))),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/channels/:channelId/notifications',
      action: 'notifications.read',
      success: { status: 200, data: ChannelNotification },
      handle: async call =>
        JSON.stringify(
          await pool.run(sql => getChannel(sql, toWisher(call), call.params['channelId'] ?? '')),
        ),
    }),
    apiEndpoint({
      method: 'PUT',
      path: '/api/projects/:projectId/channels/:channelId/notifications',
      action: 'notifications.edit',
      body: ChannelNotificationInput,
      success: { status: 200, data: ChannelNotification },
      async handle({ body: wish, params, ...call }) {
        const channelId = params['channelId'] ?? ''
        const set = await transact(pool, tx => setChannel(tx, toWisher(call), { channelId, wish }))
        return JSON.stringify(set)
      },
    }),
  ]
}

function toWisher(call: {
  organizationId: string
  projectId: string
  admitted: { person: { id: string } }
  actor: Actor
}): Wisher {
  const { organizationId, projectId, admitted, actor } = call
  return { organizationId, projectId, personId: admitted.person.id, actor }
}

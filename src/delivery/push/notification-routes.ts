import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { succeedRead, type CallOn, type SessionGuard } from '../../access/guard/guard.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { closed } from '../../http/schema-parts.ts'
import {
  getChannelNotifications,
  getNotifications,
  setChannelNotifications,
  setDefaultNotifications,
  type Recipient,
} from './notifications.ts'
import { openEvent } from './shown-pushes.ts'
import {
  ChannelNotificationSettings,
  ChannelNotificationSettingsInput,
  DefaultNotificationSettings,
  DefaultNotificationSettingsInput,
  NotificationSettingsPage,
} from './notification-schema.ts'

const tags = ['Notifications']
/** The threadSeq or the seq of the event. */
const Opened = Type.Object({ seq: Type.Integer({ minimum: 1 }) }, closed)

/** Routes for a member's notification settings in a project. */
export function notificationRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'push.notifications' })
    .use(guard)
    .get(
      '/api/projects/:projectId/notifications',
      ({ call, query }) =>
        succeedRead(call, sql => getNotifications(sql, toRecipient(call), query)),
      {
        project: 'notifications.read',
        query: PageQuery,
        response: { 200: SuccessOf(NotificationSettingsPage) },
        detail: {
          operationId: 'getNotifications',
          summary: 'Get your notification settings for a project',
          tags,
        },
      },
    )
    .put(
      '/api/projects/:projectId/notifications',
      async ({ call, body }) =>
        succeed(
          call,
          200,
          await transact(call.pool, tx => setDefaultNotifications(tx, toRecipient(call), body)),
        ),
      {
        project: 'notifications.edit',
        body: DefaultNotificationSettingsInput,
        response: { 200: SuccessOf(DefaultNotificationSettings) },
        detail: {
          operationId: 'setNotifications',
          summary: 'Change your notification settings for a project',
          tags,
        },
      },
    )
    .get(
      '/api/projects/:projectId/channels/:channelId/notifications',
      ({ call, params: { channelId } }) =>
        succeedRead(call, sql => getChannelNotifications(sql, toRecipient(call), channelId)),
      {
        project: 'notifications.read',
        response: { 200: SuccessOf(ChannelNotificationSettings) },
        detail: {
          operationId: 'getChannelNotifications',
          summary: 'Get your notification settings for a channel',
          tags,
        },
      },
    )
    .put(
      '/api/projects/:projectId/channels/:channelId/notifications',
      async ({ call, params: { channelId }, body: input }) => {
        const set = await transact(call.pool, tx =>
          setChannelNotifications(tx, toRecipient(call), { channelId, input }),
        )
        return succeed(call, 200, set)
      },
      {
        project: 'notifications.edit',
        body: ChannelNotificationSettingsInput,
        response: { 200: SuccessOf(ChannelNotificationSettings) },
        detail: {
          operationId: 'setChannelNotifications',
          summary: 'Change your notification settings for a channel',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/events/:eventId/opened',
      async ({ call, params: { eventId } }) => {
        // Not in the audit log: it changes nothing for other members, and is frequent.
        const seq = await call.pool.run(sql => openEvent(sql, toRecipient(call), eventId))
        return succeed(call, 200, { seq })
      },
      {
        project: 'events.markRead',
        response: { 200: SuccessOf(Opened) },
        detail: {
          operationId: 'openEvent',
          summary: 'Close the notification of an event on your other devices',
          tags,
        },
      },
    )
}

function toRecipient({ organizationId, projectId, admitted, actor }: CallOn<'project'>): Recipient {
  return { organizationId, projectId, accountId: admitted.account.id, actor }
}

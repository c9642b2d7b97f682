import { Elysia } from 'elysia'
import { succeedRead, type CallOn, type SessionGuard } from '../../access/guard/guard.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { ApiFailure, PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import type { Site } from '../../http/site.ts'
import { invalidField } from '../../http/validation.ts'
import { parseEndpoint } from './address.ts'
import type { PushClient, PushParts } from './encrypt-and-send.ts'
import {
  AccountQuietHours,
  AccountQuietHoursInput,
  NewSubscription,
  PhoneLink,
  PushKey,
  RemovedSubscription,
  Subscription,
  SubscriptionEdit,
  PushTestInput,
  PushTestResult,
} from './subscription-schema.ts'
import {
  editSubscription,
  getQuietHours,
  getSubscription,
  listSubscriptions,
  removeSubscription,
  saveSubscription,
  setQuietHours,
  toPhoneLink,
  type Subscriber,
} from './subscriptions.ts'
import { sendTestPush } from './test-push.ts'
import { ensureVapidKey, toVapidKeyId } from './vapid.ts'

const tags = ['Notifications']

export interface PushRouteParts extends Omit<PushParts, 'pool' | 'egress' | 'vapidSubject'> {
  guard: SessionGuard
  pushClient: PushClient
  site: Site
}

/** Routes for the devices on which an account gets notifications. */
export function pushRoutes({ guard, ...parts }: PushRouteParts) {
  const { secrets, site } = parts
  return new Elysia({ name: 'push' })
    .use(guard)
    .get(
      '/api/push/key',
      async ({ call }) => {
        const key = await call.pool.run(sql => ensureVapidKey(sql, secrets))
        return succeed(call, 200, { id: toVapidKeyId(key), publicKey: key.publicKey })
      },
      {
        account: 'push.read',
        response: { 200: SuccessOf(PushKey) },
        detail: { operationId: 'getPushKey', summary: 'Get the public VAPID key', tags },
      },
    )
    .get('/api/push/link', ({ call }) => succeed(call, 200, toPhoneLink(site.url)), {
      account: 'push.read',
      response: { 200: SuccessOf(PhoneLink) },
      detail: {
        operationId: 'getPushLink',
        summary: 'Get the link that opens this server on a phone',
        tags,
      },
    })
    .get(
      '/api/push/subscriptions',
      ({ call, query }) =>
        succeedRead(call, sql => listSubscriptions(sql, toSubscriber(call), query)),
      {
        account: 'push.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Subscription)) },
        detail: { operationId: 'listPushSubscriptions', summary: 'List your devices', tags },
      },
    )
    .post(
      '/api/push/subscriptions',
      async ({ call, body }) => {
        const endpoint = parseEndpoint(body.endpoint, parts.pushHosts)
        if (!endpoint) {
          throw invalidField(
            'endpoint',
            'invalid_value',
            'Must belong to a known push service: that of Chrome, Firefox, Safari or Edge, or a host of PUSH_HOSTS',
          )
        }
        const subscriber = toSubscriber(call)
        const saved = await transact(call.pool, async tx => {
          const id = await saveSubscription(tx, subscriber, { ...body, endpoint }, secrets)
          return getSubscription(tx, subscriber, id)
        })
        return succeed(call, 200, saved)
      },
      {
        account: 'push.subscribe',
        body: NewSubscription,
        response: { 200: SuccessOf(Subscription) },
        detail: {
          operationId: 'createPushSubscription',
          summary: 'Subscribe a device',
          description: 'Subscribing again replaces the subscription of the same device.',
          tags,
        },
      },
    )
    .patch(
      '/api/push/subscriptions/:subscriptionId',
      async ({ call, params: { subscriptionId: id }, body: edit }) => {
        const subscriber = toSubscriber(call)
        const edited = await transact(call.pool, async tx => {
          await editSubscription(tx, subscriber, { id, edit })
          return getSubscription(tx, subscriber, id)
        })
        return succeed(call, 200, edited)
      },
      {
        account: 'push.edit',
        body: SubscriptionEdit,
        response: { 200: SuccessOf(Subscription) },
        detail: {
          operationId: 'editPushSubscription',
          summary: 'Change the settings of a device',
          tags,
        },
      },
    )
    .delete(
      '/api/push/subscriptions/:subscriptionId',
      async ({ call, params: { subscriptionId: id } }) => {
        await transact(call.pool, tx => removeSubscription(tx, toSubscriber(call), id))
        return succeed(call, 200, { id })
      },
      {
        account: 'push.remove',
        response: { 200: SuccessOf(RemovedSubscription) },
        detail: { operationId: 'removePushSubscription', summary: 'Remove a device', tags },
      },
    )
    .get(
      '/api/push/quiet-hours',
      ({ call }) => succeedRead(call, sql => getQuietHours(sql, toSubscriber(call))),
      {
        account: 'push.read',
        response: { 200: SuccessOf(AccountQuietHours) },
        detail: { operationId: 'getQuietHours', summary: 'Get your quiet hours', tags },
      },
    )
    .put(
      '/api/push/quiet-hours',
      async ({ call, body }) => {
        const subscriber = toSubscriber(call)
        const changed = await transact(call.pool, async tx => {
          await setQuietHours(tx, subscriber, body)
          return getQuietHours(tx, subscriber)
        })
        return succeed(call, 200, changed)
      },
      {
        account: 'push.edit',
        body: AccountQuietHoursInput,
        response: { 200: SuccessOf(AccountQuietHours) },
        detail: {
          operationId: 'setQuietHours',
          summary: 'Change your quiet hours',
          description: 'They apply to your devices that have none of their own.',
          tags,
        },
      },
    )
    .post(
      '/api/push/test',
      async ({ call, body: { subscriptionId } }) =>
        succeed(
          call,
          200,
          await sendTestPush({ ...parts, pool: call.pool }, toSubscriber(call), subscriptionId),
        ),
      {
        account: 'push.test',
        body: PushTestInput,
        response: { 200: SuccessOf(PushTestResult), 404: ApiFailure },
        detail: { operationId: 'testPush', summary: 'Send a test notification', tags },
      },
    )
}

function toSubscriber({ admitted, actor }: CallOn<'account'>): Subscriber {
  return { accountId: admitted.account.id, sessionId: admitted.session.id, actor }
}

import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import type { Actor } from '../audit/audit.ts'
import { transact } from '../db/transaction.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import type { Site } from '../http/site.ts'
import { invalidField } from '../http/validation.ts'
import { parseEndpoint } from './hosts.ts'
import { toPageLink } from './link.ts'
import type { Pusher, PushParts } from './pusher.ts'
import { saveSubscription } from './saving.ts'
import {
  NewSubscription,
  PageLink,
  PushKey,
  RemovedSubscription,
  Subscription,
  SubscriptionEdit,
  TestInput,
  TestResult,
} from './schema.ts'
import {
  editSubscription,
  getSubscription,
  listSubscriptions,
  removeSubscription,
  type Subscriber,
} from './subscriptions.ts'
import { testSubscription } from './testing.ts'
import { ensureVapidKey, toKeyId } from './vapid.ts'

export interface PushRouteParts extends Omit<PushParts, 'egress' | 'vapidSubject'> {
  pusher: Pusher
  getSite(): Site
}

const ALL = '/api/push/subscriptions'
const ONE = `${ALL}/:subscriptionId` as const

/** The devices on which a person is notified: everybody has their own. */
export function pushRoutes(parts: PushRouteParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/push/key',
      action: 'push.read',
      success: { status: 200, data: PushKey },
      async handle() {
        const key = await parts.pool.run(sql => ensureVapidKey(sql, parts.secrets))
        return JSON.stringify({ id: toKeyId(key), publicKey: key.publicKey })
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/push/link',
      action: 'push.read',
      success: { status: 200, data: PageLink },
      handle: async () => JSON.stringify(toPageLink(parts.getSite().url)),
    }),
    apiEndpoint({
      method: 'GET',
      path: ALL,
      action: 'push.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(Subscription) },
      handle: async call =>
        JSON.stringify(
          await parts.pool.run(sql => listSubscriptions(sql, toSubscriber(call), call.query)),
        ),
    }),
    apiEndpoint({
      method: 'POST',
      path: ALL,
      action: 'push.subscribe',
      body: NewSubscription,
      success: { status: 200, data: Subscription },
      async handle({ body, ...call }) {
        const endpoint = parseEndpoint(body.endpoint, parts.pushHosts)
        if (!endpoint) {
          throw invalidField(
            'endpoint',
            'invalid_value',
            'Must be of a push service that this server knows: those of Chrome, Firefox, Safari and Edge, and PUSH_HOSTS',
          )
        }
        const subscriber = toSubscriber(call)
        const saved = await transact(parts.pool, async tx => {
          const id = await saveSubscription(tx, subscriber, { ...body, endpoint }, parts.secrets)
          return getSubscription(tx, subscriber, id)
        })
        return JSON.stringify(saved)
      },
    }),
    apiEndpoint({
      method: 'PATCH',
      path: ONE,
      action: 'push.edit',
      body: SubscriptionEdit,
      success: { status: 200, data: Subscription },
      async handle({ body: edit, params, ...call }) {
        const [subscriber, id] = [toSubscriber(call), params['subscriptionId'] ?? '']
        const edited = await transact(parts.pool, async tx => {
          await editSubscription(tx, subscriber, { id, edit })
          return getSubscription(tx, subscriber, id)
        })
        return JSON.stringify(edited)
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: ONE,
      action: 'push.remove',
      success: { status: 200, data: RemovedSubscription },
      async handle({ params, ...call }) {
        const id = params['subscriptionId'] ?? ''
        await transact(parts.pool, tx => removeSubscription(tx, toSubscriber(call), id))
        return JSON.stringify({ id })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/push/test',
      action: 'push.test',
      body: TestInput,
      success: { status: 200, data: TestResult },
      handle: async ({ body, ...call }) =>
        JSON.stringify(await testSubscription(parts, toSubscriber(call), body.subscriptionId)),
    }),
  ]
}

function toSubscriber(call: {
  admitted: { person: { id: string }; session: { id: string } }
  actor: Actor
}): Subscriber {
  const { admitted, actor } = call
  return { personId: admitted.person.id, sessionId: admitted.session.id, actor }
}

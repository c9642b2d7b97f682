import type {
  PhoneLink,
  PushKey,
  Subscription,
  SubscriptionEdit,
  PushTestResult,
} from '../../../delivery/push/schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { request, type Result } from '../request.ts'

const SUBSCRIPTIONS = '/api/push/subscriptions'

export function readKey(): Promise<Result<PushKey>> {
  return request('GET', '/api/push/key')
}

export function readPageLink(): Promise<Result<PhoneLink>> {
  return request('GET', '/api/push/link')
}

export function readDevices(cursor?: string): Promise<Result<Page<Subscription>>> {
  return request(
    'GET',
    cursor === undefined ? SUBSCRIPTIONS : `${SUBSCRIPTIONS}?${new URLSearchParams({ cursor })}`,
  )
}

/** Sends the browser's subscription to the server. */
export function sendSubscription(subscription: PushSubscription): Promise<Result<Subscription>> {
  return request('POST', SUBSCRIPTIONS, subscription.toJSON())
}

export function editDevice(id: string, edit: SubscriptionEdit): Promise<Result<Subscription>> {
  return request('PATCH', `${SUBSCRIPTIONS}/${id}`, edit)
}

export function removeDevice(id: string): Promise<Result<unknown>> {
  return request('DELETE', `${SUBSCRIPTIONS}/${id}`)
}

export function sendTest(subscriptionId: string): Promise<Result<PushTestResult>> {
  return request('POST', '/api/push/test', { subscriptionId })
}

import type { Subscription } from '../../../delivery/push/subscription-schema.ts'
import { readStored, store } from '../storage.ts'
import { request, toFailure, type Result } from '../request.ts'
import type { Input } from '../routes.ts'
import { isInstalled } from '../session.ts'
import { registerWorker } from '../worker/register.ts'
import { unsubscribe, REGISTRATION_KEY } from './unsubscribe.ts'
import { isIos, parseRegistration, toSyncAction, type Browser } from './state.ts'
import { ensureSubscription } from './subscription.ts'

/** The time limit for installing the service worker and for subscribing. */
const DEADLINE_MS = 20_000

/** Reads the capabilities and permissions of this browser. */
export async function readBrowser(): Promise<Browser> {
  const canPush =
    'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window
  const registration = canPush && (await navigator.serviceWorker.getRegistration())
  return {
    isSecure: isSecureContext,
    canPush,
    isIos: isIos(navigator.userAgent, navigator.maxTouchPoints),
    isInstalled: isInstalled(),
    permission: canPush ? Notification.permission : 'default',
    isSubscribed: Boolean(registration && (await registration.pushManager.getSubscription())),
  }
}

let synced: { accountId: string; done: Promise<void> } | undefined

/** Sends this browser's subscription to the server, once per page load. Never rejects. */
export function syncSubscription(accountId: string): Promise<void> {
  if (synced?.accountId !== accountId) synced = { accountId, done: sync(accountId).catch(() => {}) }
  return synced.done
}

/** Asks for permission and subscribes. Call it only in response to a click. */
export async function enablePush(accountId: string): Promise<Result<Subscription>> {
  const permission = await Notification.requestPermission()
  if (permission !== 'granted')
    return refuse(
      'Notifications were not allowed. Allow them for this site in the browser settings.',
    )
  try {
    const result = await subscribe(accountId)
    return result.ok && !result.data.isOn
      ? await request('PATCH /api/push/subscriptions/:subscriptionId', {
          subscriptionId: result.data.id,
          isOn: true,
        })
      : result
  } catch (error) {
    return refuse(
      `The browser could not subscribe. Its push service may be unreachable, or turned off in the browser settings. Details: ${String(error)}`,
    )
  }
}

/** Subscribes again after the push service has dropped the subscription. */
export async function renewSubscription(accountId: string): Promise<Result<Subscription>> {
  store(REGISTRATION_KEY, `${accountId} gone`)
  return enablePush(accountId)
}

async function sync(accountId: string): Promise<void> {
  const next = toSyncAction(
    await readBrowser(),
    parseRegistration(readStored(REGISTRATION_KEY)),
    accountId,
  )
  if (next === 'unsubscribe') await unsubscribe()
  if (next === 'register') await subscribe(accountId)
}

async function subscribe(accountId: string): Promise<Result<Subscription>> {
  const key = await request('GET /api/push/key')
  if (!key.ok) return key
  const known = parseRegistration(readStored(REGISTRATION_KEY))
  const manager = await withDeadline(findManager())
  const send = async (isDead: boolean) => {
    const made = await withDeadline(ensureSubscription(manager, key.data.publicKey, isDead))
    const input = made.toJSON() as Input<'POST /api/push/subscriptions'>
    return request('POST /api/push/subscriptions', input)
  }
  let result = await send(false)
  // If the server has removed the device, its push service has usually dropped it.
  const isDead = result.ok
    ? known !== undefined && known.device !== result.data.id
    : result.failure.code === 'conflict'
  if (isDead) result = await send(true)
  if (!result.ok) return result
  store(REGISTRATION_KEY, `${accountId} ${result.data.id}`)
  // The longer session of an installed app needs a subscription that has accepted a push.
  if (isInstalled() && result.data.lastPushAt === null)
    void request('POST /api/push/test', { subscriptionId: result.data.id })
  return result
}

async function findManager(): Promise<PushManager> {
  if (!(await registerWorker())) throw new Error('No service worker')
  const { pushManager } = await navigator.serviceWorker.ready
  return pushManager
}

/** Rejects after the time limit, because browsers may never settle these promises. */
function withDeadline<Result>(work: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('Timeout')), DEADLINE_MS)
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

function refuse(message: string): Result<never> {
  return { ok: false, failure: toFailure({ code: 'refused', message }) }
}

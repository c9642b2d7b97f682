import type { Subscription } from '../../../push/schema.ts'
import { readStored, store } from '../storage.ts'
import { toFailure, type Result } from '../request.ts'
import { isInstalled } from '../session.ts'
import { registerWorker } from '../worker/register.ts'
import { editDevice, readKey, sendSubscription } from './api.ts'
import { unsubscribe, REGISTRATION_KEY } from './unsubscribe.ts'
import { isIos, parseRegistration, toSyncAction, type Browser } from './state.ts'
import { ensureSubscription } from './subscription.ts'

/** For the browser to install its worker, and to reach its push service. */
const DEADLINE_MS = 20_000

/** What this browser can do, and what it is allowed to. */
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

let healed: { person: string; done: Promise<void> } | undefined

/** Sees to it once a load that the server knows what this browser of `person` has subscribed to. Never rejects. */
export function syncSubscription(person: string): Promise<void> {
  if (healed?.person !== person) healed = { person, done: sync(person).catch(() => {}) }
  return healed.done
}

/** Asks the browser for its permission, and subscribes: only where somebody has just pressed a button. */
export async function enablePush(person: string): Promise<Result<Subscription>> {
  const permission = await Notification.requestPermission()
  if (permission !== 'granted') return refuse('The browser was not allowed to notify you.')
  try {
    const result = await subscribe(person)
    return result.ok && !result.data.isOn
      ? await editDevice(result.data.id, { isOn: true })
      : result
  } catch (error) {
    return refuse(
      `The browser could not subscribe: its push service may be out of reach, or turned off in its settings. It says: ${String(error)}`,
    )
  }
}

/** Subscribes anew, where the push service no longer knows the subscription. */
export async function renewSubscription(person: string): Promise<Result<Subscription>> {
  store(REGISTRATION_KEY, `${person} gone`)
  return enablePush(person)
}

async function sync(person: string): Promise<void> {
  const next = toSyncAction(
    await readBrowser(),
    parseRegistration(readStored(REGISTRATION_KEY)),
    person,
  )
  if (next === 'give up') await unsubscribe()
  if (next === 'tell') await subscribe(person)
}

async function subscribe(person: string): Promise<Result<Subscription>> {
  const key = await readKey()
  if (!key.ok) return key
  const told = parseRegistration(readStored(REGISTRATION_KEY))
  const manager = await withDeadline(findManager())
  const send = async (isDead: boolean) =>
    sendSubscription(await withDeadline(ensureSubscription(manager, key.data.publicKey, isDead)))
  let result = await send(false)
  // What the server has removed since, its push service no longer knows, mostly.
  const isDead = result.ok
    ? told !== undefined && told.device !== result.data.id
    : result.failure.code === 'conflict'
  if (isDead) result = await send(true)
  if (result.ok) store(REGISTRATION_KEY, `${person} ${result.data.id}`)
  return result
}

async function findManager(): Promise<PushManager> {
  if (!(await registerWorker())) throw new Error('No service worker')
  const { pushManager } = await navigator.serviceWorker.ready
  return pushManager
}

/** What browsers promise, they may keep for ever. */
function withDeadline<Result>(work: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('No answer')), DEADLINE_MS)
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

function refuse(message: string): Result<never> {
  return { ok: false, failure: toFailure({ code: 'refused', message }) }
}

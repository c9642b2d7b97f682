import type { BrowserContext, Disposable } from 'playwright-core'
import type { Subscription } from '../../../src/delivery/push/subscription-schema.ts'
import { toPhoneLink } from '../../../src/delivery/push/subscriptions.ts'
import type { FakeApi } from './api.ts'

/** The push state of a browser without a real push service. */
export interface FakeBrowser {
  permission?: NotificationPermission
  /** The answer of the user to the permission prompt. */
  says?: NotificationPermission
  /** The base64url of the key that it has subscribed with; undefined if it has not. */
  subscribedFor?: string
  isSecure?: boolean
  canPush?: boolean
  userAgent?: string
  /** The reason why it cannot subscribe. */
  refusal?: string
}

export const PUSH_KEY = Buffer.from([4, ...Array.from({ length: 64 }, (_, n) => n + 1)]).toString(
  'base64url',
)
export const OTHER_KEY = Buffer.from(PUSH_KEY, 'base64url').reverse().toString('base64url')

/** Puts fake service workers and push managers into the pages of a context, until disposed. */
export function fakeBrowser(context: BrowserContext, fake: FakeBrowser): Promise<Disposable> {
  return context.addInitScript(fake => {
    const define = (on: object, name: string, value: unknown) =>
      Object.defineProperty(on, name, { configurable: true, get: () => value })
    if (fake.isSecure === false) define(globalThis, 'isSecureContext', false)
    if (fake.userAgent) define(navigator, 'userAgent', fake.userAgent)
    if (fake.canPush === false) {
      Reflect.deleteProperty(globalThis, 'PushManager')
      return
    }
    let permission = fake.permission ?? 'default'
    define(Notification, 'permission', undefined)
    Object.defineProperty(Notification, 'permission', { get: () => permission })
    Notification.requestPermission = async () => (permission = fake.says ?? permission)
    const toBytes = (text: string) =>
      Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0))
    let made = 0
    let current: object | undefined
    const subscribe = (key: string) => {
      const endpoint = `https://push.example/${++made}`
      current = {
        endpoint,
        options: { applicationServerKey: toBytes(key).buffer },
        toJSON: () => ({ endpoint, keys: { p256dh: 'a', auth: 'b' } }),
        unsubscribe: async () => ((current = undefined), true),
      }
    }
    if (fake.subscribedFor) subscribe(fake.subscribedFor)
    const registration = {
      pushManager: {
        getSubscription: async () => current ?? null,
        async subscribe({ applicationServerKey }: { applicationServerKey: string }) {
          if (fake.refusal) throw new DOMException(fake.refusal, 'AbortError')
          if (current) throw new DOMException('Another subscription', 'InvalidStateError')
          subscribe(applicationServerKey)
          return current
        },
      },
      update: async () => {},
    }
    define(Navigator.prototype, 'serviceWorker', {
      register: async () => registration,
      getRegistration: async () => registration,
      ready: Promise.resolve(registration),
      controller: null,
      addEventListener() {},
    })
  }, fake)
}

export const LAPTOP: Subscription = {
  id: 'psh_1',
  label: 'Chrome on Linux',
  host: 'fcm.googleapis.com',
  isOn: true,
  isCurrent: true,
  quietHours: [{ days: [1, 2, 3, 4, 5], from: '22:00', to: '07:00', timeZone: 'Europe/Berlin' }],
  ownQuietHours: true,
  hasQuietSummary: false,
  mutes: [],
  letsCriticalThrough: null,
  createdAt: '2026-11-01T09:00:00Z',
  lastPushAt: '2026-11-20T12:00:00Z',
  lastOutcome: 'The push service answered 201',
  refusals: 0,
  flagged: null,
  lacksSecondFactor: false,
}
export const PHONE: Subscription = {
  ...LAPTOP,
  id: 'psh_2',
  label: 'Safari on iPhone',
  host: 'web.push.apple.com',
  isCurrent: false,
  quietHours: null,
  ownQuietHours: false,
  lastOutcome: 'The push service answered 403: it refused the key or the message',
  refusals: 2,
  flagged: 'The push service answered 403: it refused the key or the message',
}
export const TABLET: Subscription = {
  ...PHONE,
  id: 'psh_3',
  label: `Tablet ${'longword'.repeat(30)} \u202Eright to left`,
  isOn: false,
  lastPushAt: null,
  lastOutcome: null,
  flagged: null,
}

/** Answers the push routes: for these devices, by a server at `url`. */
export function fakePush(
  api: FakeApi,
  devices: readonly Subscription[],
  url = 'https://tidings.example',
): void {
  api.on('GET /api/push/key', () => ({ data: { id: 'vap_1', publicKey: PUSH_KEY } }))
  api.on('GET /api/push/link', () => ({ data: toPhoneLink(url) }))
  let items = devices
  api.on('GET /api/push/subscriptions', () => ({ data: { items, nextCursor: null } }))
  api.on('POST /api/push/subscriptions', () => ({ data: devices[0] }))
  api.on('POST /api/push/test', ({ subscriptionId }) => {
    items = items.filter(({ id }) => id !== subscriptionId)
    return {
      data: {
        subscriptionId,
        isAccepted: false,
        status: 410,
        body: `<h1>Gone</h1> ${'permanently'.repeat(40)}`,
        reason: 'The push service answered 410: the subscription is gone',
        latencyMs: 61,
        isRemoved: true,
      },
    }
  })
}

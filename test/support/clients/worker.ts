import type { BrowserContext, Page } from 'playwright-core'
import type { TestBrowser } from '../servers/push-service.ts'
import { scaled, until } from '../until.ts'

/** Gives the pages of a context the subscription of `browser`. */
export async function giveSubscription(
  context: BrowserContext,
  { endpoint, keys }: Pick<TestBrowser, 'endpoint' | 'keys'>,
): Promise<void> {
  await context.addInitScript(
    ({ endpoint, keys }) => {
      const KEY = 'test.subscribed'
      const toBytes = (text: string) =>
        Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0))
      const find = () => {
        const key = sessionStorage.getItem(KEY)
        if (key === null) return null
        return {
          endpoint,
          options: { applicationServerKey: toBytes(key).buffer },
          toJSON: () => ({ endpoint, expirationTime: null, keys }),
          unsubscribe: async () => (sessionStorage.removeItem(KEY), true),
        }
      }
      Object.assign(PushManager.prototype, {
        getSubscription: async () => find(),
        async subscribe({ applicationServerKey }: { applicationServerKey: string }) {
          sessionStorage.setItem(KEY, applicationServerKey)
          return find()
        },
      })
    },
    { endpoint, keys },
  )
}

/** The service worker of a page, as DevTools and its push service reach it. */
export interface TestWorker {
  /** Errors in it so far. */
  readonly problems: string[]
  /** Delivers a decrypted push; resolves when a notification is shown. */
  deliver(text: string): Promise<void>
  /** Returns the titles of the shown notifications, sorted. */
  readTitles(): Promise<string[]>
  /**
   * Clicks the notification with this title, or one of its buttons. Resolves to the path or URL for
   * which the worker opens a page; null if it uses one that is open. Only the click of a person
   * could open it.
   */
  click(title: string, button?: string): Promise<string | null>
}

/** The worker's scope, with the notifications shown so far. */
interface Scope {
  registration: ServiceWorkerRegistration
  clients: object
  NotificationEvent: new (type: string, init: object) => Event
  shown: number
}

export async function reachWorker(context: BrowserContext, page: Page): Promise<TestWorker> {
  const session = await context.newCDPSession(page)
  const problems: string[] = []
  let registrationId: string | undefined
  session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    registrationId = registrations.find(({ isDeleted }) => !isDeleted)?.registrationId
  })
  session.on('ServiceWorker.workerErrorReported', ({ errorMessage }) => {
    problems.push(errorMessage.errorMessage)
  })
  await session.send('ServiceWorker.enable')
  await until(() => registrationId !== undefined && context.serviceWorkers().length > 0)
  await page.evaluate(async () => void (await navigator.serviceWorker.ready))
  const worker = context.serviceWorkers()[0]!
  // Chromium may omit a notification that is just being shown: its list is no condition to wait
  // for.
  await worker.evaluate(factor => {
    // It waits longer for the answers of pages on a slow machine.
    const wait = self.setTimeout
    Object.assign(self, { setTimeout: (work: () => void, ms = 0) => wait(work, ms * factor) })
    const scope = self as unknown as Scope
    const { prototype } = ServiceWorkerRegistration
    const show = prototype.showNotification
    scope.shown = 0
    prototype.showNotification = async function (...about) {
      await show.apply(this, about)
      scope.shown += 1
    }
  }, scaled(5))
  const countShown = () => worker.evaluate(() => (self as unknown as Scope).shown)
  return {
    problems,
    async deliver(data) {
      const before = await countShown()
      const { origin } = new URL(page.url())
      await session.send('ServiceWorker.deliverPushMessage', {
        origin,
        registrationId: registrationId ?? '',
        data,
      })
      await until(async () => (await countShown()) > before)
    },
    async readTitles() {
      const titles = await worker.evaluate(async () => {
        const standing = await (self as unknown as Scope).registration.getNotifications()
        return standing.map(({ title }) => title)
      })
      return titles.sort()
    },
    click: (title, button) =>
      worker.evaluate(
        async ([title, button]) => {
          const scope = self as unknown as Scope
          const standing = await scope.registration.getNotifications()
          const notification = standing.find(one => one.title === title) as
            | (Notification & { actions: { action: string; title: string }[] })
            | undefined
          if (!notification) throw new Error(`No notification says ${title}`)
          let opened: string | null = null
          Object.defineProperty(scope.clients, 'openWindow', {
            configurable: true,
            value: async (path: string) => void (opened = path),
          })
          const action = notification.actions.find(one => one.title === button)?.action ?? ''
          const event = new scope.NotificationEvent('notificationclick', { notification, action })
          // Events made by scripts cannot be extended.
          let work: Promise<unknown> = Promise.resolve()
          Object.defineProperty(event, 'waitUntil', { value: (one: typeof work) => (work = one) })
          self.dispatchEvent(event)
          await work
          return opened
        },
        [title, button] as const,
      ),
  }
}

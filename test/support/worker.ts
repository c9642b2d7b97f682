import type { BrowserContext, Page } from 'playwright-core'
import type { TestBrowser } from './push-service.ts'
import { until } from './until.ts'

/** Gives the pages of a context what `browser` has subscribed to, as its push service would: that is the vendor's. */
export async function giveSubscription(
  context: BrowserContext,
  { endpoint, keys }: TestBrowser,
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

/** The service worker behind a page, as DevTools and its push service reach it. */
export interface TestWorker {
  /** Hands it what a push service would, decrypted. */
  deliver(text: string): Promise<void>
  /** The titles of the notifications that stand, after `count` of them do. */
  titles(count: number): Promise<string[]>
  /** Clicks the notification with this title. */
  click(title: string): Promise<void>
}

export async function reachWorker(context: BrowserContext, page: Page): Promise<TestWorker> {
  const session = await context.newCDPSession(page)
  let registrationId: string | undefined
  session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    registrationId = registrations.find(({ isDeleted }) => !isDeleted)?.registrationId
  })
  await session.send('ServiceWorker.enable')
  await until(() => registrationId !== undefined)
  await page.evaluate(async () => void (await navigator.serviceWorker.ready))
  const readTitles = () =>
    page.evaluate(async () => {
      const { getNotifications } = ServiceWorkerRegistration.prototype
      const standing = await getNotifications.call(await navigator.serviceWorker.ready)
      return standing.map(({ title }) => title)
    })
  return {
    async deliver(data) {
      const { origin } = new URL(page.url())
      await session.send('ServiceWorker.deliverPushMessage', {
        origin,
        registrationId: registrationId ?? '',
        data,
      })
    },
    async titles(count) {
      let titles: string[] = []
      await until(async () => (titles = await readTitles()).length >= count)
      return titles
    },
    async click(title) {
      const [worker] = context.serviceWorkers()
      if (!worker) throw new Error('There is no service worker')
      await worker.evaluate(async title => {
        const scope = self as unknown as {
          registration: ServiceWorkerRegistration
          NotificationEvent: new (type: string, init: object) => Event
        }
        const standing = await scope.registration.getNotifications()
        const notification = standing.find(one => one.title === title)
        if (!notification) throw new Error(`No notification says ${title}`)
        const event = new scope.NotificationEvent('notificationclick', { notification })
        // Events that scripts make cannot be prolonged.
        let work: Promise<unknown> = Promise.resolve()
        Object.defineProperty(event, 'waitUntil', { value: (one: typeof work) => (work = one) })
        self.dispatchEvent(event)
        await work
      }, title)
    },
  }
}

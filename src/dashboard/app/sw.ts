import { ensureSubscription } from './push/subscription.ts'
import { setBadge } from './worker/badge.ts'
import { ask, type PathAnswer, type PathQuestion } from './worker/ask.ts'
import { EVENT_ACTION, parsePush, type NotificationContent } from './worker/push-message.ts'
import type { ServiceWorkerScope, Tab } from './worker/scope.ts'

// The service worker. It caches the application for offline use and shows push notifications.
// It never caches responses of /api and /v1.
const scope = self as unknown as ServiceWorkerScope // The global object of a service worker.
const { build, files, pathPrefixes } = scope.SHELL
const assets = `/assets/${build}/`

const PAGE = '/'
const ACKNOWLEDGE_ACTION = 'acknowledge'
const ANSWER_ACTION = 'answer '
const FAILED = 'Not done: '
/** How long to wait for the page before the cached one is shown. */
const PAGE_TIMEOUT_MS = 6_000
const DEADLINE_MS = 20_000
/** Resolves when the last push is shown. Each one waits for it, to see what it may replace. */
let shown = Promise.resolve()

scope.addEventListener('install', event => event.waitUntil(keepShell()))
scope.addEventListener('activate', event => event.waitUntil(takeOver()))
scope.addEventListener('message', ({ data, ports }) => {
  if (data === 'take over') void scope.skipWaiting()
  ports[0]?.postMessage(build)
})
scope.addEventListener('fetch', event => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== location.origin) return
  if (request.mode === 'navigate') {
    if (isOurs(request.url)) event.respondWith(openPage(request))
  } else if (pathname.startsWith('/assets/')) event.respondWith(openAsset(request))
})
scope.addEventListener('push', event => {
  shown = shown.catch(() => {}).then(() => show(() => event.data?.json()))
  event.waitUntil(shown)
})
scope.addEventListener('notificationclick', event => {
  const { notification, action } = event
  notification.close()
  // The browser's own notifications have none.
  const content: Partial<NotificationContent> = Object(notification.data)
  event.waitUntil(
    action === ACKNOWLEDGE_ACTION
      ? act(content as NotificationContent, content.acknowledge, {})
      : action.startsWith(ANSWER_ACTION)
        ? act(content as NotificationContent, content.answer, {
            action: action.slice(ANSWER_ACTION.length),
          })
        : content.url !== undefined && action !== EVENT_ACTION
          ? scope.clients.openWindow(content.url)
          : openPath(content.path ?? PAGE),
  )
})
scope.addEventListener('pushsubscriptionchange', event => event.waitUntil(renew()))

async function keepShell(): Promise<void> {
  const cache = await caches.open(assets)
  await cache.addAll([
    ...files.map(name => assets + name),
    new Request(PAGE, { cache: 'no-cache' }),
  ])
}

/** Deletes the caches of older builds but the last one, which open pages may still need. */
async function takeOver(): Promise<void> {
  const older = (await caches.keys()).filter(name => name !== assets)
  for (const name of older.slice(0, -1)) await caches.delete(name)
  await scope.clients.claim()
}

/** The page from the server, or the cached one while the server cannot be reached. */
async function openPage(request: Request): Promise<Response> {
  const answer = fetch(request)
  const page = await (await caches.open(assets)).match(PAGE)
  if (!page) return answer
  const late = new Promise<undefined>(resolve => setTimeout(resolve, PAGE_TIMEOUT_MS))
  const response = await Promise.race([answer, late]).catch(() => undefined)
  // 502 to 504 come from a proxy. The cached page explains the failure better.
  return !response || response.status > 501 ? page : response
}

async function openAsset(request: Request): Promise<Response> {
  return (await caches.match(request)) ?? fetch(request)
}

async function show(read: () => unknown): Promise<void> {
  const pushed = parsePush(read, location.origin)
  const content = (await findNewer(pushed)) ?? pushed
  for (const tag of pushed.close)
    for (const one of await scope.registration.getNotifications({ tag })) one.close()
  await showContent(content)
  // A visible page clears the badge. Calling getNotifications() here would drop the new one.
  const isSeen = (await listTabs()).some(({ visibilityState }) => visibilityState === 'visible')
  if (!isSeen && !Number.isNaN(pushed.appBadge)) await setBadge(pushed.appBadge)
}

function showContent(content: NotificationContent): Promise<void> {
  const { acknowledge, answers, url } = content
  return scope.registration.showNotification(content.title, {
    ...content,
    // The types of the DOM lack them.
    ...{
      actions: [
        ...answers.map(({ id, label }) => ({ action: ANSWER_ACTION + id, title: label })),
        ...(acknowledge ? [{ action: ACKNOWLEDGE_ACTION, title: 'Acknowledge' }] : []),
        ...(url ? [{ action: EVENT_ACTION, title: 'Show event' }] : []),
      ],
    },
    data: content,
    icon: `${assets}icon-192.png`,
    badge: `${assets}badge.png`,
  })
}

/** Acknowledges or answers with the session. If that fails, says so and opens the event. */
async function act(content: NotificationContent, path = '', body: object): Promise<void> {
  const answer = post(path, body)
  const reason = await answer.then(toReason, () => 'The server could not be reached')
  if (reason === undefined) return
  const title = `${FAILED}${content.title.replace(FAILED, '')}`
  await showContent({ ...content, title, body: reason, silent: false, renotify: true })
  await openPath(content.path)
}

/** Returns why the server refused a request. Undefined if it did not. */
async function toReason(answer: Response): Promise<string | undefined> {
  if (answer.ok) return undefined
  const body: unknown = await answer.json().catch(() => {})
  const { error, message = error } = Object(body) as Record<string, unknown>
  return typeof message === 'string' ? message : 'The server refused it'
}

function post(path: string, body: object): Promise<Response> {
  return fetch(path, {
    method: 'POST',
    signal: AbortSignal.timeout(DEADLINE_MS),
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/**
 * Returns the newer notification that a late push would replace. It is shown again, silently,
 * because browsers revoke the permission if a push shows nothing.
 */
async function findNewer({
  tag,
  seq,
}: NotificationContent): Promise<NotificationContent | undefined> {
  const [shown] = seq ? await scope.registration.getNotifications({ tag }) : []
  return shown?.data?.seq > seq ? { ...shown!.data, silent: true, renotify: false } : undefined
}

function listTabs(): Promise<readonly Tab[]> {
  return scope.clients.matchAll({ type: 'window', includeUncontrolled: true })
}

/** Returns whether a URL is a page of the application. */
function isOurs(url: string): boolean {
  return pathPrefixes.includes(new URL(url).pathname.split('/')[1] ?? '')
}

/**
 * Opens a path in a tab that says that it shows the page or can, or in a new one. The URL of a tab
 * is the one that its document was created with.
 */
async function openPath(path: string): Promise<void> {
  const tabs = (await listTabs()).filter(({ url }) => isOurs(url))
  const askTab = (tab: Tab, mayOpen: boolean) =>
    ask<PathAnswer>(tab, { path, mayOpen } satisfies PathQuestion)
  const answers = await Promise.all(tabs.map(tab => askTab(tab, false)))
  const tab = tabs[answers.indexOf('shown')] ?? tabs[answers.indexOf('free')]
  const answer = tab && (await askTab(tab, true))
  // Browsers may refuse to focus the tab. It shows the right page anyway.
  if (answer === 'shown' || answer === 'free') await tab?.focus().catch(() => {})
  else await scope.clients.openWindow(path)
}

/** Subscribes again and sends the new subscription to the server. */
async function renew(): Promise<void> {
  const answer = await fetch('/api/push/key', { signal: AbortSignal.timeout(DEADLINE_MS) })
  // Without a session there is nothing to renew.
  if (!answer.ok) return
  const { data } = (await answer.json()) as { data: { publicKey: string } } // The server's PushKey.
  const subscription = await ensureSubscription(scope.registration.pushManager, data.publicKey)
  await post('/api/push/subscriptions', subscription)
}

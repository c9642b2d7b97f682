import { ensureSubscription } from './push/subscription.ts'
import { parsePush } from './worker/push-message.ts'
import type { ServiceWorkerScope, Tab } from './worker/scope.ts'

// The service worker: keeps the application for when there is no network, and shows what is pushed. It never touches
// what the server answers under /api and /v1.
const scope = self as unknown as ServiceWorkerScope // That is what a service worker runs in.
const { build, files, pathPrefixes } = scope.SHELL
const assets = `/assets/${build}/`

const PAGE = '/'
/** How long the page may take to come before the kept one is shown. */
const PATIENCE_MS = 6_000
const DEADLINE_MS = 20_000

const kept = new Set(files.map(name => assets + name))

scope.addEventListener('install', event => event.waitUntil(keepShell()))
scope.addEventListener('activate', event => event.waitUntil(takeOver()))
scope.addEventListener('message', ({ data }) => {
  if (data === 'take over') void scope.skipWaiting()
})
scope.addEventListener('fetch', event => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== location.origin) return
  if (request.mode === 'navigate') {
    if (isOurs(request.url)) event.respondWith(openPage(request))
  } else if (kept.has(pathname)) event.respondWith(openAsset(request))
})
scope.addEventListener('push', event => event.waitUntil(show(() => event.data?.json())))
scope.addEventListener('notificationclick', event => {
  event.notification.close()
  event.waitUntil(openPath(readPath(event.notification)))
})
scope.addEventListener('pushsubscriptionchange', event => event.waitUntil(renew()))

async function keepShell(): Promise<void> {
  const cache = await caches.open(assets)
  await cache.addAll([...kept, new Request(PAGE, { cache: 'no-cache' })])
}

/** The pages that stand may still want what an older worker kept; they have been told that there is something newer. */
async function takeOver(): Promise<void> {
  for (const name of await caches.keys()) if (name !== assets) await caches.delete(name)
  await scope.clients.claim()
}

/** The page as the server has it; where it cannot be reached, the kept one, which says so. */
async function openPage(request: Request): Promise<Response> {
  const answer = fetch(request)
  const page = await caches.match(PAGE)
  if (!page) return answer
  const late = new Promise<undefined>(resolve => setTimeout(resolve, PATIENCE_MS))
  const response = await Promise.race([answer, late]).catch(() => undefined)
  // What a proxy says of a server that is away says less than our own page.
  return !response || response.status > 501 ? page : response
}

async function openAsset(request: Request): Promise<Response> {
  return (await caches.match(request)) ?? fetch(request)
}

async function show(read: () => unknown): Promise<void> {
  const { title, body, tag, path } = parsePush(read, location.origin)
  await scope.registration.showNotification(title, {
    body,
    ...(tag !== undefined && { tag }),
    data: path,
    icon: `${assets}icon-192.png`,
    badge: `${assets}badge.png`,
  })
  // A page that is open counts by itself. Asked for what stands, browsers forget what they are about to show.
  if ((await listTabs()).length > 0) return
  const { setAppBadge } = navigator as Partial<Navigator>
  await setAppBadge?.call(navigator).catch(() => {})
}

function listTabs(): Promise<readonly Tab[]> {
  return scope.clients.matchAll({ type: 'window', includeUncontrolled: true })
}

/** Whether a URL of this server is a page of the application. */
function isOurs(url: string): boolean {
  return pathPrefixes.includes(new URL(url).pathname.split('/')[1] ?? '')
}

function readPath({ data }: Notification): string {
  return typeof data === 'string' ? data : PAGE
}

/** Opens a page of ours: in a tab that is there, or in one of its own. */
async function openPath(path: string): Promise<void> {
  const tabs = await listTabs()
  const there = tabs.find(tab => tab.url === location.origin + path)
  const tab = there ?? tabs.find(({ url }) => isOurs(url))
  try {
    if (!tab) throw new Error('No tab is open')
    if (!there) await tab.navigate(path)
    // Browsers may refuse to bring it to the front: it shows what it should all the same.
    await tab.focus().catch(() => {})
  } catch {
    // Nor does every tab let itself be led: those that are not ours yet do not.
    await scope.clients.openWindow(path)
  }
}

/** The browser has given up the subscription: the server is told of another one. */
async function renew(): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  const answer = await fetch('/api/push/key', { signal })
  // Whoever is signed out is told of nothing.
  if (!answer.ok) return
  const { data } = (await answer.json()) as { data: { publicKey: string } } // As PushKey has it.
  const subscription = await ensureSubscription(scope.registration.pushManager, data.publicKey)
  await fetch('/api/push/subscriptions', {
    method: 'POST',
    signal,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(subscription),
  })
}

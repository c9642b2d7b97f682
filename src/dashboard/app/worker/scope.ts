/** The build that a worker belongs to; build.ts writes it before the worker's code. */
export interface AppShell {
  /** The folder of its files under /assets, which no other build has. */
  build: string
  /** What the pages need without a network, by the names in it. */
  files: readonly string[]
  /** How the paths of its pages begin: their first segments. */
  pathPrefixes: readonly string[]
}

/** What happens in a service worker and takes a while. */
interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void
}

interface Events {
  install: ExtendableEvent
  activate: ExtendableEvent
  message: Event & { data: unknown }
  fetch: Event & { request: Request; respondWith(answer: Promise<Response>): void }
  push: ExtendableEvent & { data: { json(): unknown } | null }
  notificationclick: ExtendableEvent & { notification: Notification }
  pushsubscriptionchange: ExtendableEvent
}

export interface Tab {
  url: string
  focus(): Promise<Tab>
  navigate(url: string): Promise<Tab | null>
}

/** The part of a service worker's global scope that ours uses: the types of pages know nothing of it. */
export interface ServiceWorkerScope {
  SHELL: AppShell
  registration: ServiceWorkerRegistration
  clients: {
    claim(): Promise<void>
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<readonly Tab[]>
    openWindow(url: string): Promise<Tab | null>
  }
  skipWaiting(): Promise<void>
  addEventListener<Name extends keyof Events>(
    name: Name,
    listener: (event: Events[Name]) => void,
  ): void
}

/** The build that a worker belongs to; build.ts writes it before the worker's code. */
export interface Shell {
  /** The folder of its files under /assets, which no other build has. */
  build: string
  /** What the pages need without a network, by the names in it. */
  files: readonly string[]
  /** How the paths of its pages begin: their first segments. */
  places: readonly string[]
}

/** What happens in a service worker and takes a while. */
interface Lasting extends Event {
  waitUntil(work: Promise<unknown>): void
}

interface Events {
  install: Lasting
  activate: Lasting
  message: Event & { data: unknown }
  fetch: Event & { request: Request; respondWith(answer: Promise<Response>): void }
  push: Lasting & { data: { json(): unknown } | null }
  notificationclick: Lasting & { notification: Notification }
  pushsubscriptionchange: Lasting
}

export interface Tab {
  url: string
  focus(): Promise<Tab>
  navigate(url: string): Promise<Tab | null>
}

/** The part of a service worker's global scope that ours uses: the types of pages know nothing of it. */
export interface Scope {
  SHELL: Shell
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

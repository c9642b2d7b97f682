/** The build of a worker; build.ts prepends it to the worker's code. */
export interface AppShell {
  /** The folder of this build's files under /assets. */
  build: string
  /** The names of the files that pages need offline. */
  files: readonly string[]
  /** The first segments of the paths of its pages. */
  pathPrefixes: readonly string[]
}

/** An event that keeps the service worker alive until its work is done. */
interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void
}

interface Events {
  install: ExtendableEvent
  activate: ExtendableEvent
  message: Event & { data: unknown; ports: readonly MessagePort[] }
  fetch: Event & { request: Request; respondWith(answer: Promise<Response>): void }
  push: ExtendableEvent & { data: { json(): unknown } | null }
  notificationclick: ExtendableEvent & { notification: Notification; action: string }
  pushsubscriptionchange: ExtendableEvent
}

export interface Tab {
  /** The URL that its document was created with. */
  url: string
  visibilityState: DocumentVisibilityState
  focus(): Promise<Tab>
  postMessage(message: unknown, ports: Transferable[]): void
}

/** The used part of a service worker's global scope, which the DOM types lack. */
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

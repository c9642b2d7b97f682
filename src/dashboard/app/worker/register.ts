import { signal } from '@preact/signals'

/** Whether there is a newer version of the application than the one that is running. */
export const hasUpdate = signal(false)

const PATH = '/sw.js'
const LOOK_MS = 3_600_000

/** Where browsers let nobody name a script by mere text: the policy that trusts this one path. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(): string },
  ): { createScriptURL(path: string): string }
}
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
const policy = trustedTypes?.createPolicy('worker', { createScriptURL: () => PATH })

let current: ServiceWorkerRegistration | undefined

/** Has the browser keep the service worker; undefined where it cannot, as over plain http. As often as wanted. */
export async function registerWorker(): Promise<ServiceWorkerRegistration | undefined> {
  if (!('serviceWorker' in navigator)) return undefined
  const { serviceWorker } = navigator
  const registration = await serviceWorker
    .register(policy?.createScriptURL(PATH) ?? PATH)
    .catch(() => undefined) // Somebody has forbidden it, or the network is gone.
  if (!registration || registration === current) return registration
  if (!current) setInterval(() => void current?.update().catch(() => {}), LOOK_MS)
  current = registration
  // The first worker of all replaces nothing.
  const look = () => (hasUpdate.value ||= Boolean(registration.waiting && serviceWorker.controller))
  look()
  registration.onupdatefound = () => registration.installing?.addEventListener('statechange', look)
  return registration
}

/** Goes on with the newer version. */
export function applyUpdate(): void {
  const waiting = current?.waiting
  if (!waiting) return location.reload()
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), {
    once: true,
  })
  waiting.postMessage('take over')
}

import { toScriptUrl } from './script-url.ts'
import { BUILD, hasUpdate } from './update.ts'

const URL_OF_WORKER = toScriptUrl('worker', '/sw.js')
const UPDATE_CHECK_MS = 3_600_000

let current: ServiceWorkerRegistration | undefined

/** Registers the service worker. Resolves with undefined if that fails, as over plain HTTP. */
export async function registerWorker(): Promise<ServiceWorkerRegistration | undefined> {
  if (!('serviceWorker' in navigator)) return undefined
  const { serviceWorker } = navigator
  // It may be blocked, or the network down.
  const registration = await serviceWorker.register(URL_OF_WORKER).catch(() => undefined)
  if (!registration || registration === current) return registration
  if (!current) setInterval(() => void current?.update().catch(() => {}), UPDATE_CHECK_MS)
  current = registration
  // The first worker is not an update. After a reload, the worker of the new page may still wait.
  const look = () => {
    if (!registration.waiting || !serviceWorker.controller) return
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = ({ data }) => (hasUpdate.value ||= data !== BUILD)
    registration.waiting.postMessage('build', [port2])
  }
  look()
  registration.onupdatefound = () => registration.installing?.addEventListener('statechange', look)
  return registration
}

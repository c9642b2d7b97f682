import { signal } from '@preact/signals'

/** True if a newer version of the application is ready to load. */
export const hasUpdate = signal(false)

/** The build of this page. */
export const BUILD = document
  .querySelector<HTMLScriptElement>('[src$="/main.js"]')
  ?.src.split('/')
  .at(-2)

/** Offers an update if the server serves another build. An older server names none. */
export function noteBuild(served: string): void {
  hasUpdate.value ||= served !== '' && served !== BUILD
}

/** Activates the new version and reloads the page. */
export async function applyUpdate(): Promise<void> {
  const { serviceWorker } = navigator as Partial<Navigator>
  const registration = await serviceWorker?.getRegistration().catch(() => undefined)
  if (!registration?.waiting) return location.reload()
  serviceWorker?.addEventListener('controllerchange', () => location.reload(), { once: true })
  registration.waiting.postMessage('take over')
}

import { store } from '../storage.ts'

/** Under which name a browser keeps who has turned push on in it. */
export const REGISTRATION_KEY = 'push'

/** Takes this browser's subscription away from its push service. Never rejects. */
export async function unsubscribe(): Promise<void> {
  store(REGISTRATION_KEY, '')
  try {
    const registration = await navigator.serviceWorker.getRegistration()
    const subscription = await registration?.pushManager.getSubscription()
    await subscription?.unsubscribe()
  } catch {
    // The server sends nothing there any more.
  }
}

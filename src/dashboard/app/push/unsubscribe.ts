import { store } from '../storage.ts'

/** The storage key for the account and device that turned on push in this browser. */
export const REGISTRATION_KEY = 'push'

/** Cancels this browser's subscription at its push service. Never rejects. */
export async function unsubscribe(): Promise<void> {
  store(REGISTRATION_KEY, '')
  try {
    const registration = await navigator.serviceWorker.getRegistration()
    const subscription = await registration?.pushManager.getSubscription()
    await subscription?.unsubscribe()
  } catch {
    // The server no longer sends to this subscription anyway.
  }
}

/**
 * What this browser has subscribed to with the server's key: one for another key is given up, because no browser takes a
 * second beside it, and so is one that `isDead`. Rejects where the browser or its push service refuses.
 */
export async function ensureSubscription(
  manager: PushManager,
  publicKey: string,
  isDead = false,
): Promise<PushSubscription> {
  const known = await manager.getSubscription()
  if (known && !isDead && isFor(known, publicKey)) return known
  await known?.unsubscribe()
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })
}

/** Some browsers do not say for which key it is: then it is believed. */
function isFor({ options }: PushSubscription, publicKey: string): boolean {
  const key = options.applicationServerKey
  if (!key) return true
  const text = btoa(String.fromCharCode(...new Uint8Array(key)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') === publicKey
}

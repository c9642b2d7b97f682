/**
 * Returns this browser's subscription for the server's key. Browsers allow only one subscription,
 * so one for another key is replaced, as is one that `isDead`. Rejects if the browser refuses.
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

/** Some browsers do not expose the key. Those subscriptions are accepted. */
function isFor({ options }: PushSubscription, publicKey: string): boolean {
  const key = options.applicationServerKey
  if (!key) return true
  const text = btoa(String.fromCharCode(...new Uint8Array(key)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') === publicKey
}

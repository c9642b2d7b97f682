/** The content of a notification that tells whether its event was seen. */
interface Content {
  path?: unknown
  channel?: unknown
}

/**
 * Closes the notifications of this browser whose event was seen. The badge goes with the last one.
 * Call it only while the page is visible: Chromium forgets a notification that is just being shown.
 * Never rejects.
 */
export async function closeSeen(isSeen: (content: Content) => boolean): Promise<void> {
  try {
    const registration = await navigator.serviceWorker.getRegistration()
    const shown = (await registration?.getNotifications()) ?? []
    const seen = shown.filter(({ data }) => isSeen((data ?? {}) as Content))
    for (const one of seen) one.close()
    const { clearAppBadge } = navigator as Partial<Navigator>
    if (shown.length === seen.length) await clearAppBadge?.call(navigator)
  } catch {
    // The browser has no notifications.
  }
}

import { setBadge } from '../worker/badge.ts'
import type { NotificationContent } from '../worker/push-message.ts'

/**
 * Lists the notifications of this browser. Lists none while the page is hidden: Chromium forgets a
 * notification that is just being shown. Never rejects.
 */
export async function listNotifications(): Promise<readonly Notification[]> {
  try {
    if (document.hidden) return []
    const registration = await navigator.serviceWorker.getRegistration()
    return (await registration?.getNotifications()) ?? []
  } catch {
    return [] // The browser has no notifications.
  }
}

/** Closes notifications of seen events, and the badge with the last one. Never rejects. */
export async function closeSeen(
  isSeen: (content: NotificationContent) => boolean | undefined,
  listed = listNotifications(),
): Promise<void> {
  const shown = await listed
  const seen = shown.filter(({ data }) => isSeen((data ?? {}) as NotificationContent))
  for (const one of seen) one.close()
  // The badge of a hidden page counts its new events.
  if (seen.length > 0 && seen.length === shown.length && !document.hidden) await setBadge(0)
}

/** Returns whether this browser never shows notifications, but could. */
export function isOffHere(): boolean {
  return 'Notification' in window && Notification.permission !== 'granted'
}

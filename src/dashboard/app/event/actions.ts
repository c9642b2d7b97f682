import { setNotifications } from '../channels/set-notifications.ts'
import { showToast } from '../components/toast.tsx'
import { copyText } from '../copy-text.ts'
import { toEventPath } from '../paths.ts'

/** Passes the link of an event to the system, or copies it where the system takes none. */
export async function shareEvent(project: string, id: string, title: string): Promise<void> {
  const url = new URL(toEventPath(project, id), location.href).href
  const { share } = navigator as Partial<Navigator>
  if (share) return void share.call(navigator, { title, url }).catch(() => {}) // It was cancelled.
  showToast((await copyText(url)) ? 'Link copied.' : 'The link could not be copied.')
}

/** Mutes a channel for the signed-in member, until they end it. Offers to undo it. */
export function muteChannel(project: string, id: string, channel: string): Promise<void> {
  return setNotifications(project, id, { state: 'mute' }, `${channel} is muted for you.`)
}

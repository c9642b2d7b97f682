import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { Icon } from '../components/icon.tsx'
import { setNotifications } from './set-notifications.ts'

interface BellOptions {
  project: string
  channel: ProjectChannel
}

/** Turns the signed-in member's notifications of a channel on and off. */
export function ChannelBell({ project, channel: { id, name, isMuted } }: BellOptions) {
  return (
    <button
      type="button"
      class="bell"
      aria-pressed={!isMuted}
      aria-label={`Notifications from ${name}`}
      title={isMuted ? 'Muted' : 'Notifications on'}
      onClick={() =>
        void setNotifications(
          project,
          id,
          { state: isMuted ? 'on' : 'mute' },
          isMuted ? `${name} notifies you again.` : `${name} is muted for you.`,
        )
      }
    >
      <Icon name={isMuted ? 'muted' : 'notifications'} />
    </button>
  )
}

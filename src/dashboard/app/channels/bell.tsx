import type { ProjectChannel } from '../../../channels/schema.ts'
import { Icon } from '../components/icon.tsx'
import { t } from '../locales/translate.tsx'
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
      aria-label={t('channels.bell', { name })}
      title={t(isMuted ? 'common.muted' : 'channels.bellOn')}
      onClick={() =>
        void setNotifications(
          project,
          id,
          isMuted ? 'on' : 'mute',
          t(isMuted ? 'channels.unmuted' : 'channels.isMuted', { channel: name }),
        )
      }
    >
      <Icon name={isMuted ? 'muted' : 'notifications'} />
    </button>
  )
}

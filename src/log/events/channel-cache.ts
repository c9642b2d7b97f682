import { setNewest } from '../../base/functions.ts'

const MAX_CHANNELS = 10_000
const CHANNEL_FRESH_MS = 5_000

/** The fields of a channel that an event's row and response need. */
export interface EventChannel {
  uuid: string
  id: string
  name: string
}

/**
 * Caches channels for 5 s, so that a busy channel is not looked up for each event. Ids never
 * change; a name may be out of date.
 */
export function createChannelCache() {
  const channels = new Map<string, { channel: EventChannel; untilMs: number }>()
  return {
    find(projectId: string, slug: string, nowMs: number): EventChannel | undefined {
      const entry = channels.get(`${projectId} ${slug}`)
      return entry && entry.untilMs > nowMs ? entry.channel : undefined
    },
    remember(projectId: string, slug: string, channel: EventChannel, nowMs: number): void {
      const entry = { channel, untilMs: nowMs + CHANNEL_FRESH_MS }
      setNewest(channels, `${projectId} ${slug}`, entry, MAX_CHANNELS)
    },
    clear: () => channels.clear(),
  }
}

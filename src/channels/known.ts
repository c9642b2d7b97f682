const MAX_CHANNELS = 10_000
const FRESH_MS = 5_000

/** A channel as events need it. */
export interface KnownChannel {
  uuid: string
  id: string
  name: string
}

export interface KnownChannels {
  find(projectId: string, slug: string, nowMs: number): KnownChannel | undefined
  keep(projectId: string, slug: string, channel: KnownChannel, nowMs: number): void
  clear(): void
}

/** Channels met in the last seconds, so that a busy one is not looked up per event. Ids never change; names may. */
export function createKnownChannels(): KnownChannels {
  const channels = new Map<string, { channel: KnownChannel; untilMs: number }>()
  return {
    find(projectId, slug, nowMs) {
      const entry = channels.get(`${projectId} ${slug}`)
      return entry && entry.untilMs > nowMs ? entry.channel : undefined
    },
    keep(projectId, slug, channel, nowMs) {
      if (channels.size >= MAX_CHANNELS) channels.delete(channels.keys().next().value ?? '')
      const name = `${projectId} ${slug}`
      channels.delete(name)
      channels.set(name, { channel, untilMs: nowMs + FRESH_MS })
    },
    clear: () => channels.clear(),
  }
}

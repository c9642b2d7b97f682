import { setNewest } from '../../base/functions.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import { toExceeded } from './quota-exceeded.ts'

const RECOUNT_EVERY_MS = 10_000
const RECOUNT_BATCH = 20
/** A full organization is counted again after this time, if an event needs another channel. */
const COUNT_IS_OLD_MS = 1_000
const MAX_KNOWN_CHANNELS = 10_000

export interface CountedChannel {
  organizationId: string
  projectId: string
  channelSlug: string
}

/** The channels of an organization, as this process knows them. */
interface Channels {
  /** When they were last counted. */
  counted: number
  countedAtMs: number
  /** Channels of events since then that this process did not know. They may have existed before. */
  added: number
}

/**
 * Counts the channels of organizations. It queries the database only for an unknown channel of an
 * organization that has all of its channels.
 */
export function createChannelQuota({ limit, pool }: { limit: number; pool: Pool }) {
  const byOrganization = new Map<string, Channels>()
  const known = new Map<string, true>()

  function get(organizationId: string): Channels {
    const found = byOrganization.get(organizationId)
    if (found) return found
    const channels: Channels = { counted: 0, countedAtMs: -Infinity, added: 0 }
    byOrganization.set(organizationId, channels)
    return channels
  }

  const hasRoom = ({ counted, added }: Channels) => counted + added < limit

  function isKnown({ projectId, channelSlug }: CountedChannel): boolean {
    return known.has(`${projectId} ${channelSlug}`)
  }

  function remember({ projectId, channelSlug }: CountedChannel): void {
    setNewest(known, `${projectId} ${channelSlug}`, true, MAX_KNOWN_CHANNELS)
  }

  /** Throws unless the channel exists, or the organization has room for it. */
  async function find(channel: CountedChannel): Promise<void> {
    const { organizationId, projectId, channelSlug } = channel
    const [found] = await pool.run(
      sql => sql`select from channels where project_id = ${projectId} and slug = ${channelSlug}`,
    )
    if (found) return remember(channel)
    const channels = get(organizationId)
    const isOld = performance.now() - channels.countedAtMs > COUNT_IS_OLD_MS
    if (isOld || channels.counted < limit) await recount([organizationId])
    if (hasRoom(channels)) return
    const advice = 'Use one of its channels, or ask the operator of the server for more.'
    throw toExceeded('channels', 'channels', limit, advice)
  }

  async function recount(organizationIds: string[]): Promise<void> {
    // The snapshot may lack channels that are remembered while the query runs.
    const before = organizationIds.map(id => [get(id), get(id).added] as const)
    const rows = await pool.run(
      sql => sql<{ id: string; channels: number }[]>`
        select o.id, (
          select count(*)::int
          from (
            select
            from projects p
              cross join lateral channels_of(p.id) c
            where p.organization_id = o.id and p.deleted_at is null
            limit ${limit}
          ) as counted
        ) as channels
        from unnest(${toArray(organizationIds)}::uuid[]) as o (id)
      `,
    )
    for (const [channels, added] of before) channels.added = Math.max(0, channels.added - added)
    const countedAtMs = performance.now()
    for (const { id, channels: counted } of rows) {
      const channels = byOrganization.get(id)
      if (channels) Object.assign(channels, { counted, countedAtMs })
    }
  }

  return {
    /** Throws `quota_exceeded` if an event needs one channel too many. */
    check(channel: CountedChannel): Promise<void> | void {
      if (hasRoom(get(channel.organizationId)) || isKnown(channel)) return
      return find(channel)
    },
    /** Counts the channel of an event that was appended. */
    count(channel: CountedChannel): void {
      if (isKnown(channel)) return
      get(channel.organizationId).added++
      remember(channel)
    },
    /** Counts a channel that is about to be created. Throws `quota_exceeded` like `check`. */
    async countNew(channel: CountedChannel): Promise<void> {
      if (isKnown(channel)) return
      const channels = get(channel.organizationId)
      if (!hasRoom(channels)) await find(channel)
      channels.added++
    },
    /** Counts the channels of some organizations with new ones. */
    async recount(): Promise<void> {
      const nowMs = performance.now()
      const due = [...byOrganization].filter(
        ([, { added, countedAtMs }]) => added > 0 && nowMs - countedAtMs > RECOUNT_EVERY_MS,
      )
      if (due.length > 0) await recount(due.slice(0, RECOUNT_BATCH).map(([id]) => id))
    },
    forget: (organizationId: string): void => void byOrganization.delete(organizationId),
  }
}

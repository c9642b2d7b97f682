import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../../src/database/arrays.ts'
import type { RemovedEvent } from './ledger-check.ts'
import type { Fleet } from './fleet.ts'
import type { Follower } from './follower.ts'

const EVERY_MS = 1_000
const BATCH = 2_000

/** A project whose events expire soon. */
export interface ExpiringProject {
  stop(): Promise<void>
  /** Returns how many events were made old. */
  retired(): number
  /** Returns how many of them are gone. */
  countCut(): Promise<number>
}

/**
 * Sets a retention of a day. From the beginning of the log on, it makes events two days old that
 * all followers have seen and that have no pending delivery. Retention may delete them at any time,
 * and no follower may get a gap.
 */
export async function startExpiringProject(
  { sql }: Fleet,
  {
    projectId,
    followers,
    leavers,
  }: { projectId: string; followers: readonly Follower[]; leavers: Map<string, RemovedEvent> },
): Promise<ExpiringProject> {
  await sql`update projects set keep_days = 1 where id = ${projectId}`
  const own = followers.filter(follower => follower.projectId === projectId)
  const isOwn = (leaver: RemovedEvent) => leaver.projectId === projectId && leaver.isDone
  let isStopped = false

  async function retire(): Promise<void> {
    const seen = Math.min(...own.map(({ from, cursor }) => (from === undefined ? 0 : cursor)))
    const events = await sql<Omit<RemovedEvent, 'isDone' | 'fate'>[]>`
      select
        e.project_id as "projectId", e.id, e.seq::int as seq, e.metadata ->> 'intent' as intent,
        c.name as "channelName"
      from events e
        join channels c on c.project_id = e.project_id and c.id = e.channel_id
      where e.project_id = ${projectId} and e.seq <= ${seen} and e.created_at > now() - interval '1 day'
        and e.seq <= (
          select min(coalesce(d.seq, 0))
          from delivery_kinds k
            left join delivery_cursors d on d.project_id = ${projectId} and d.kind = k.kind
        )
        and e.seq < coalesce((
          select min(w.seq)
          from outbox o
            join events w on w.project_id = o.project_id and w.id = o.event_id
          where o.project_id = ${projectId}
        ), 9223372036854775807)
      order by e.seq
      limit ${BATCH}
    `
    // Recorded before the statement, whose outcome is not always known.
    const fresh = events.map((event): RemovedEvent => ({ ...event, isDone: true, fate: 'unknown' }))
    for (const leaver of fresh) leavers.set(leaver.id, leaver)
    await sql`
      update events set created_at = created_at - interval '2 days'
      where project_id = ${projectId} and seq = any(${toArray(fresh.map(({ seq }) => seq))}::bigint[])
        and created_at > now() - interval '1 day'
    `
    for (const leaver of fresh) leaver.fate = 'gone'
  }

  const running = (async () => {
    while (!isStopped) {
      await retire().catch(() => {}) // Postgres may be down.
      await sleep(EVERY_MS)
    }
  })()
  return {
    async stop() {
      isStopped = true
      await running
    },
    retired: () => [...leavers.values()].filter(isOwn).length,
    async countCut() {
      const all = [...leavers.values()].filter(isOwn)
      const [row] = await sql<[{ left: number }]>`
        select count(*)::int as left from events
        where project_id = ${projectId} and id = any(${toArray(all.map(({ id }) => id))}::uuid[])
      `
      return all.length - row.left
    },
  }
}

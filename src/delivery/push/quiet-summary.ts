import { NIL_UUID } from '../../base/ids.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { WITHHELD_REASONS } from './dispatch.ts'
import { toQuietMessage, type ChannelCount, type PushMessage } from './payload.ts'
import { quietUntil } from './quiet-hours.ts'
import type { PushTarget } from './target.ts'

/** It is due later than the quiet hours end, so that it also counts what was withheld last. */
const DELAY_MS = 5_000
const MAX_LATE_MS = 12 * 3_600_000
/** About the most withheld pushes of a device that are kept. */
const MAX_COUNTED = 500

/** Returns true for a delivery that is about an event. Any other has no project. */
export function isOfEvent({ projectId }: Pick<DeliveryAttempt, 'projectId'>): boolean {
  return projectId !== NIL_UUID
}

/** Returns true if a delivery without an event is the summary of a device's quiet hours. */
export function isQuietSummary({
  eventId,
  targetId,
}: Pick<DeliveryAttempt, 'eventId' | 'targetId'>): boolean {
  return eventId === targetId
}

/**
 * Keeps a withheld push for the summary of its device, and enqueues this for the end of the quiet
 * hours, unless it waits already.
 */
export async function addToQuietSummary(
  pool: Pool,
  { id, event, isSummary, quietHours, nowMs }: PushTarget,
): Promise<void> {
  const end = quietUntil(quietHours, new Date(nowMs))
  if (!event || !end) return
  const dueAt = new Date(end.getTime() + DELAY_MS)
  await pool.run(
    sql => sql`
      with queued as (
        insert into outbox (project_id, event_id, kind, target_id, available_at, requested_at)
        values (${NIL_UUID}, ${id}, 'push', ${id}, ${dueAt}, ${dueAt})
        on conflict (project_id, event_id, kind, target_id) do nothing
      )
      insert into quiet_pushes (project_id, event_id, target_id, is_summary)
      select ${event.projectId}, ${event.eventId}, ${id}, ${isSummary}
      where (select count(*) from quiet_pushes where target_id = ${id}) < ${MAX_COUNTED}
      on conflict (project_id, event_id, target_id) do nothing
    `,
  )
}

/** Lets the summaries of an account's devices look at once whether their quiet hours are over. */
export async function hastenQuietSummaries(tx: Tx, accountId: string): Promise<void> {
  await tx`
    update outbox set available_at = now() + ${DELAY_MS} * interval '1 ms'
    where id = any(array(
      select o.id
      from push_subscriptions d
        join outbox o on (o.project_id, o.event_id, o.kind, o.target_id) = (${NIL_UUID}, d.id, 'push', d.id)
      where d.account_id = ${accountId} and o.token is null and o.available_at > now()
      -- As the settler does.
      order by o.id
      for update of o
    ))
  `
}

/** Returns the message of a summary, or why there is none now. */
export async function toQuietSummary(
  pool: Pool,
  { id, targetId }: DeliveryAttempt,
  { target, siteUrl }: { target: PushTarget; siteUrl: string },
): Promise<PushMessage | DeliveryOutcome> {
  const { withheld, quietHours, hasQuietSummary, nowMs } = target
  // The id has the time of the first withheld push. Quiet hours may have been changed since.
  const sinceMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const endMs = quietUntil(quietHours, new Date(sinceMs))?.getTime() ?? nowMs
  const nextMs = quietUntil(quietHours, new Date(nowMs))?.getTime()
  const none = (reason: string) => ({ kind: 'withheld', reason }) as const
  if (!hasQuietSummary) return none('The member does not want it')
  if (nowMs > endMs + MAX_LATE_MS) return none('It is more than 12 hours late')
  if (nextMs !== undefined) {
    const afterMs = nextMs + DELAY_MS - nowMs
    return { kind: 'postponed', afterMs, reason: WITHHELD_REASONS.quiet, isAlone: true }
  }
  if (withheld !== undefined) return none(withheld)
  const counts = await pool.run(sql => countWithheld(sql, targetId))
  if (counts.length === 0) return none('Nothing that was withheld is left')
  return toQuietMessage(siteUrl, { id, counts })
}

/**
 * Counts the events that quiet hours withheld from a device, by channel, the most first. It leaves
 * out what is deleted, muted or no longer shown to its account.
 */
export function countWithheld(sql: Queryable, deviceId: string): Promise<ChannelCount[]> {
  return sql<ChannelCount[]>`
    with found as materialized (
      select q.project_id, q.event_id, q.is_summary or count(*) over () >= ${MAX_COUNTED} as is_more
      from quiet_pushes q
      where q.target_id = ${deviceId}
      -- Pushes that are withheld at the same time can each be the last that is kept.
      limit ${MAX_COUNTED}
    )
    select c.name as channel, n.count, n.is_more as "isMore"
    from push_subscriptions d
      join sessions s on s.id = d.session_id
      cross join lateral (
        select f.project_id, e.channel_id, count(*)::int as count, bool_or(f.is_more) as is_more
        from found f
          join projects p on p.id = f.project_id and p.deleted_at is null
          join organizations o on o.id = p.organization_id and o.deleted_at is null
          join memberships m on m.organization_id = o.id and m.account_id = d.account_id
          cross join lateral event_by_id(f.project_id, f.event_id) e
        where e.deleted_at is null and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
        group by f.project_id, e.channel_id
      ) n
      cross join lateral channel_by_id(n.project_id, n.channel_id) c
    where d.id = ${deviceId} and not c.is_archived and not is_muted(n.project_id, c.id, d.account_id)
    order by n.count desc, c.name
  `
}

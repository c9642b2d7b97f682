import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Sql, Tx } from '../../database/sql.ts'
import type { Dispatched, DispatchRequest } from '../outbox/delivery-kind.ts'
import { toDispatched, type DispatchedRow } from '../outbox/delivery-kind.ts'

/**
 * The most pending deliveries of one webhook. The backlog is checked every 10 seconds, so it can
 * grow a little larger.
 */
export const MAX_BACKLOG = 100_000
/**
 * A full backlog counts as full until a tenth of it is delivered. A recovery fills no more than
 * this, so that it keeps out no new events.
 */
export const ROOM_AT = 0.9 * MAX_BACKLOG

/**
 * The recorded reason for an event that a full backlog kept out: a code for programs, then a
 * sentence.
 */
export const BACKLOG_FULL =
  'backlog_full: This webhook already has 100,000 pending deliveries. Recover the time range once it works again'

/** The reason shown for an event that no webhook of its project received. */
export const NO_MATCHING_WEBHOOK =
  'No webhook matched: each is for other channels or another view, was disabled, or was created later'

/**
 * Writes a delivery for each webhook without a view that matches a new event of these projects.
 * `onViews` is called if events are to be matched with the views of others.
 */
export async function dispatchWebhooks(
  sql: Sql,
  request: DispatchRequest,
  onViews?: () => void,
): Promise<Dispatched> {
  const { projectIds, maxEvents, lease } = request
  const [row] = await sql<[DispatchedRow]>`
    select ranges, count, leased
    from dispatch_webhooks(
      project_ids => ${toArray(projectIds)}::uuid[],
      max_events => ${maxEvents},
      refusal => ${BACKLOG_FULL},
      lease => ${lease ? JSON.stringify(lease) : null}::text::json
    )
  `
  if (row.ranges.some(one => one.has_views)) onViews?.()
  return toDispatched(row, request)
}

/**
 * Writes a delivery of events that a view finds for each webhook with the view. An event that a
 * recovery has delivered meanwhile is left out. Returns the number of deliveries.
 */
export async function enqueueFound(
  tx: Tx,
  projectId: string,
  { viewId, eventIds }: { viewId: string; eventIds: readonly string[] },
): Promise<number> {
  const [row] = await tx<[{ n: number }]>`
    select d.count::int as n
    from insert_deliveries('webhook', array(
      select (e.project_id, e.id, w.id, e.created_at, e.deleted_at is not null, w.backlog_full_at is not null)::new_delivery
      from events_by_ids(${projectId}, ${toArray(eventIds)}::uuid[]) e
        join webhooks w on w.project_id = e.project_id and w.view_id = ${viewId}
          and w.deleted_at is null and w.disabled_at is null
          and (date_trunc('milliseconds', w.created_at) <= e.created_at or w.created_at > now() + interval '5 s')
      where ${matchesChannel(tx)} and not exists (
        select
        from deliveries d
        where d.project_id = e.project_id and d.event_id = e.id and d.kind = 'webhook' and d.target_id = w.id
      )
    ), ${BACKLOG_FULL}, null) d
  `
  return row.n
}

/** Returns a condition: the webhook `w` is for the channel of the event `e`. */
export function matchesChannel(sql: Queryable): Fragment {
  return sql`(
    w.has_all_channels
    or exists (
      select from webhook_channels wc
      where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
    )
  )`
}

/** Explains why an event has no delivery. Undefined if its project has no webhooks. */
export async function explainNoWebhookDelivery(
  sql: Queryable,
  { projectId }: { projectId: string },
): Promise<string | undefined> {
  const [webhook] = await sql`
    select from webhooks w
    where w.project_id = ${projectId} and w.type = 'event.created' and w.deleted_at is null
    limit 1
  `
  return webhook && NO_MATCHING_WEBHOOK
}

/**
 * Resumes targets that are no disabled webhook, or one that was disabled for 30 days: its attempts
 * end its deliveries. Marks full backlogs.
 */
export async function sweepWebhooks(sql: Sql, mayBeFull: boolean): Promise<void> {
  await sql`
    update delivery_targets t set paused_until = '-infinity', single_until = '-infinity', resumed_at = now()
    where t.kind = 'webhook' and 'infinity' in (t.paused_until, t.single_until)
      and not exists (
        select
        from webhooks w
        where w.id = t.id and w.deleted_at is null
          and (t.paused_until < 'infinity' or w.disabled_at >= checked_now() - interval '30 days')
      )
  `
  await markFullBacklogs(sql, mayBeFull)
}

/**
 * Marks webhooks with a full backlog, and unmarks those with room again. It marks none unless
 * `mayBeFull` is set. A locked webhook is left to the next check.
 */
async function markFullBacklogs(sql: Sql, mayBeFull: boolean): Promise<void> {
  await sql`
    with found as materialized (
      select w.id
      from webhooks w
      where w.backlog_full_at is not null and not exists (
        select from outbox o
        where o.kind = 'webhook' and o.target_id = w.id
        order by o.available_at
        limit 1 offset ${ROOM_AT - 1}
      )
      order by w.id
      for no key update skip locked
    )
    update webhooks w set backlog_full_at = null
    from found f
    where w.id = f.id
  `
  if (!mayBeFull) return
  await sql`
    with recursive walk as (
      (select o.target_id from outbox o where o.kind = 'webhook' order by o.target_id limit 1)
      union all
      select n.target_id
      from walk t
        cross join lateral (
          select o.target_id
          from outbox o
          where o.kind = 'webhook' and o.target_id > t.target_id
          order by o.target_id
          limit 1
        ) n
    ), found as materialized (
      select w.id
      from walk t
        join webhooks w on w.id = t.target_id
      where w.backlog_full_at is null and exists (
        select from outbox o
        where o.kind = 'webhook' and o.target_id = t.target_id
        order by o.available_at
        limit 1 offset ${MAX_BACKLOG - 1}
      )
      order by w.id
      for no key update of w skip locked
    )
    update webhooks w set backlog_full_at = now()
    from found f
    where w.id = f.id
  `
}

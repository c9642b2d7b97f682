import { toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { findEventJson } from '../../log/events/read.ts'
import { FORMER_MEMBER } from '../../log/events/threads.ts'

/** An acknowledgement, as a message names it. */
export interface Acknowledged {
  by: string
  at: string
  until: string | null
}

/** An acknowledgement with the event that was acknowledged. Ids are uuids. */
export interface AcknowledgedEvent {
  acknowledgementId: string
  eventId: string
  eventJson: string | undefined
  acknowledged: Acknowledged
}

/**
 * Enqueues the message about an acknowledgement for each webhook that its event goes to. Its
 * deliveries belong to the id of the acknowledgement. Ids are uuids.
 */
export async function enqueueAcknowledged(
  tx: Tx,
  { projectId, eventId }: { projectId: string; eventId: string },
  acknowledgementId: string,
): Promise<void> {
  await tx`
    insert into outbox (project_id, event_id, kind, target_id)
    select w.project_id, ${acknowledgementId}, 'webhook', w.id
    from webhooks w
    where w.project_id = ${projectId} and w.deleted_at is null and w.disabled_at is null and w.backlog_full_at is null
      and (
        exists (
          select from outbox o
          where o.project_id = w.project_id and o.event_id = ${eventId} and o.kind = 'webhook' and o.target_id = w.id
        )
        or exists (
          select from deliveries d
          where d.project_id = w.project_id and d.event_id = ${eventId} and d.kind = 'webhook' and d.target_id = w.id
            and d.state in ('delivered', 'failed', 'dead')
        )
        -- The dispatch of the event is still to come.
        or w.type = 'event.created' and w.view_id is null and exists (
          select
          from event_by_id(w.project_id, ${eventId}) e
          where e.created_at >= date_trunc('milliseconds', w.created_at) and not exists (
            select from delivery_cursors c
            where c.project_id = w.project_id and c.kind = 'webhook' and c.seq >= e.seq
          ) and (
            w.has_all_channels
            or exists (
              select from webhook_channels c
              where c.project_id = w.project_id and c.webhook_id = w.id and c.channel_id = e.channel_id
            )
          )
        )
      )
    order by w.id
  `
}

/**
 * Returns an acknowledgement by its own id or by that of an event, and the event that was
 * acknowledged; undefined if there is none.
 */
export async function findAcknowledged(
  sql: Queryable,
  projectId: string,
  of: { id: string } | { eventId: string },
): Promise<AcknowledgedEvent | undefined> {
  const found =
    'id' in of
      ? sql`acknowledgement_by_id(${projectId}, ${of.id})`
      : sql`find_alarm(${projectId}, ${of.eventId}) f cross join lateral (select (f.acknowledgement).*)`
  const [row] = await sql<(Acknowledged & { id: string; eventId: string })[]>`
    select
      a.id, a.event_id as "eventId", coalesce(r.name, a.token_name, ${FORMER_MEMBER}) as by,
      to_iso(a.at) as at, to_iso(a.until) as until
    from ${found} a
      left join accounts r on r.id = a.account_id
    where a.id is not null
  `
  if (!row) return undefined
  const { id, eventId, ...acknowledged } = row
  const eventJson = await findEventJson(sql, projectId, toId('evt', eventId))
  return { acknowledgementId: id, eventId, eventJson, acknowledged }
}

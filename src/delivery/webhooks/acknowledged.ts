import { parseId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { findEventJson } from '../../log/events/read.ts'
import type { Event } from '../../log/events/schema.ts'
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
 * Enqueues the message about an acknowledgement for each webhook that its event went to. Its
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
      )
    order by w.id
  `
}

/** Returns the acknowledgement with an id, and its event; undefined if there is none. */
export async function findAcknowledged(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<AcknowledgedEvent | undefined> {
  const [row] = await sql<{ event_id: string; by: string; at: Date; until: Date | null }[]>`
    select a.event_id, coalesce(r.name, a.token_name, ${FORMER_MEMBER}) as by, a.at, a.until
    from acknowledgement_by_id(${projectId}, ${id}) a
      left join accounts r on r.id = a.account_id
    where a.id is not null
  `
  if (!row) return undefined
  const { event_id: eventId, by, at, until } = row
  return {
    acknowledgementId: id,
    eventId,
    eventJson: await findEventJson(sql, projectId, toId('evt', eventId)),
    acknowledged: { by, at: at.toISOString(), until: until?.toISOString() ?? null },
  }
}

/** Returns the acknowledgement of an event with this JSON; undefined if another has replaced it. */
export async function findAcknowledgedEvent(
  sql: Queryable,
  projectId: string,
  eventJson: string,
): Promise<AcknowledgedEvent | undefined> {
  // Safe, because `toEventJson` wrote it.
  const { id, seq, threadSeq = seq } = JSON.parse(eventJson) as Event
  const [row] = await sql<{ id: string }[]>`
    select id
    from acknowledgements
    where project_id = ${projectId} and thread_seq = ${threadSeq} and event_id = ${parseId('evt', id) ?? null}
  `
  return row && findAcknowledged(sql, projectId, row.id)
}

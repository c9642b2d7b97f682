import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import type { KindName } from './delivery-kind.ts'
import type { DeliveryRow } from './deliveries.ts'

/** The most events that one statement inserts. */
const MAX_ROWS = 1_000

export interface DeliveryTarget {
  kind: KindName
  projectId: string
  targetId: string
}

/**
 * Enqueues events for a target, also those that it has received before, with all attempts of the
 * schedule. A pending delivery becomes due, a dead letter is removed, and a delivery in flight
 * stays as it is. It skips events that the project does not have, and returns the number of the
 * others. Call `Outbox.wakeWorkers` after the commit; otherwise the poll finds the deliveries
 * within a second.
 */
export async function enqueueDeliveries(
  tx: Tx,
  { kind, projectId, targetId }: DeliveryTarget,
  eventIds: readonly string[],
): Promise<number> {
  const inserted: string[] = []
  const known: string[] = []
  // Rows are inserted in the order of their keys, in all statements together.
  const ids = eventIds.toSorted()
  for (let at = 0; at < ids.length; at += MAX_ROWS) {
    const page = toArray(ids.slice(at, at + MAX_ROWS))
    const rows = await tx<{ id: string; is_new: boolean }[]>`
      with wanted as materialized (
        select e.id
        from events_by_ids(${projectId}, ${page}::uuid[]) e
        where e.deleted_at is null
      ), queued as (
        insert into outbox (project_id, event_id, kind, target_id)
        select ${projectId}::uuid, w.id, ${kind}, ${targetId}::uuid
        from wanted w
        order by w.id
        on conflict (project_id, event_id, kind, target_id) do nothing
        returning event_id
      )
      select w.id, q.event_id is not null as is_new
      from wanted w
        left join queued q on q.event_id = w.id
    `
    for (const row of rows) (row.is_new ? inserted : known).push(row.id)
  }
  // A delivery that is settled meanwhile, and given up, keeps its dead letter.
  const revived = [...inserted, ...(await makeDue(tx, { kind, projectId, targetId }, known))]
  await tx`
    with given_up as materialized (
      select d.id
      from (select u.id from unnest(${toArray(revived)}::uuid[]) as u (id) order by u.id) e
        cross join lateral (
          select d.id
          from dead_letters d
          where d.project_id = ${projectId}
            and (d.event_id, d.kind, d.target_id) >= (e.id, ${kind}::text, ${targetId}::uuid)
            and (d.event_id, d.kind, d.target_id) <= (e.id, ${kind}::text, ${targetId}::uuid)
          order by d.event_id, d.kind, d.target_id
          limit 1
          for update
        ) d
    )
    delete from dead_letters d
    using given_up g
    where d.id = g.id
  `
  return inserted.length + known.length
}

/**
 * Makes waiting deliveries of events due, as if they were new. Returns the events whose deliveries
 * were not in flight. Like the settler, it locks rows in the order of their ids.
 */
async function makeDue(
  tx: Tx,
  { kind, projectId, targetId }: DeliveryTarget,
  eventIds: readonly string[],
): Promise<string[]> {
  if (eventIds.length === 0) return []
  const rows = await tx<{ event_id: string }[]>`
    with found as materialized (
      select o.id
      from unnest(${toArray(eventIds)}::uuid[]) as e (id)
        cross join lateral (
          select o.id
          from outbox o
          where o.project_id = ${projectId}
            -- Only the key has this order. A target can have a long backlog.
            and (o.event_id, o.kind, o.target_id) >= (e.id, ${kind}::text, ${targetId}::uuid)
            and (o.event_id, o.kind, o.target_id) <= (e.id, ${kind}::text, ${targetId}::uuid)
          order by o.event_id, o.kind, o.target_id
          limit 1
        ) o
    ), held as materialized (
      select o.id
      from outbox o
      where o.id = any(array(select f.id from found f)) and o.token is null
      order by o.id
      for update
    )
    update outbox o set available_at = now(), requested_at = now(), attempts = 0, reason = null
    from held h
    where o.id = h.id
    returning o.event_id
  `
  return rows.map(row => row.event_id)
}

/**
 * Replays a dead letter with all attempts of the schedule; it keeps its id. Throws `not_found` if
 * the project has no such dead letter, and `conflict` if its event was deleted or the delivery is
 * in flight.
 */
export async function replayDeadLetter(
  tx: Tx,
  { projectId, id }: { projectId: string; id: string | undefined },
): Promise<DeliveryRow> {
  const [dead] = id
    ? await tx<{ event_id: string; kind: KindName; target_id: string; has_event: boolean }[]>`
        select
          d.event_id, d.kind, d.target_id,
          exists (
            select
            from event_by_id(${projectId}, d.event_id) e
            where e.deleted_at is null
          ) as has_event
        from dead_letters d
        where d.project_id = ${projectId} and d.id = ${id}
      `
    : []
  if (!dead) throw notFound()
  if (!dead.has_event) {
    throw new Fault('conflict', 'The event of this delivery was deleted. It cannot be sent again.')
  }
  const columns = tx`
    id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
    available_at as next_attempt_at
  `
  // Another replay has the same id, so no conflict is named.
  const [added] = await tx<DeliveryRow[]>`
    insert into outbox (id, project_id, event_id, kind, target_id)
    values (${id ?? null}, ${projectId}, ${dead.event_id}, ${dead.kind}, ${dead.target_id})
    on conflict do nothing
    returning ${columns}
  `
  // If the event was enqueued again meanwhile, that delivery becomes due.
  const [pending] = added
    ? [added]
    : await tx<DeliveryRow[]>`
        update outbox set available_at = least(available_at, now()), requested_at = now()
        where project_id = ${projectId} and event_id = ${dead.event_id}
          and kind = ${dead.kind} and target_id = ${dead.target_id} and token is null
        returning ${columns}
      `
  // Deliveries are locked before dead letters.
  const taken =
    await tx`delete from dead_letters where project_id = ${projectId} and id = ${id ?? null}`
  if (taken.count === 0) throw notFound()
  if (!pending) throw new Fault('conflict', 'This delivery is in flight right now.')
  return pending
}

function notFound(): Fault {
  return new Fault('not_found', 'No dead letter of this project has this id.')
}

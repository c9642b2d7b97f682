import { toArray } from '../db/arrays.ts'
import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { KindName } from './kind.ts'
import type { DeliveryRow } from './deliveries.ts'

/** The most events and rows that one statement handles. */
const MAX_ROWS = 1_000

export interface DeliveryTarget {
  kind: KindName
  projectId: string
  targetId: string
}

/**
 * Enqueues events, or audit entries, for a target, also those that it has received before, with
 * all attempts of the schedule. A pending delivery becomes due, a dead letter is removed, and a
 * delivery in flight stays as it is. It skips events that the project does not have, and returns
 * the number of the others. Call `Outbox.wakeWorkers` after the commit; otherwise the poll finds
 * the deliveries within a second.
 */
export async function enqueueDeliveries(
  tx: Tx,
  { kind, projectId, targetId }: DeliveryTarget,
  eventIds: readonly string[],
): Promise<number> {
  let events = 0
  for (let at = 0; at < eventIds.length; at += MAX_ROWS) {
    const rows = await tx`
      with wanted as materialized (
        select e.id
        from events_by_ids(${projectId}, ${toArray(eventIds.slice(at, at + MAX_ROWS))}::uuid[]) e
        where e.deleted_at is null
        union all
        select a.id
        from projects p
          join audit_log a on a.organization_id = p.organization_id
        where p.id = ${projectId} and a.id = any(${toArray(eventIds.slice(at, at + MAX_ROWS))}::uuid[])
      ), revived as (
        delete from dead_letters d
        using wanted w
        where d.project_id = ${projectId} and d.event_id = w.id and d.kind = ${kind}
          and d.target_id = ${targetId}
      ), queued as (
        insert into outbox as o (project_id, event_id, kind, target_id)
        select ${projectId}::uuid, w.id, ${kind}, ${targetId}::uuid
        from wanted w
        order by w.id
        on conflict (project_id, event_id, kind, target_id) do update set
          available_at = now(), requested_at = now(), attempts = 0, reason = null
          where o.token is null
      )
      select id from wanted
    `
    events += rows.length
  }
  return events
}

/**
 * Makes all pending deliveries of a target due, for example after it was enabled. The outbox begins
 * within a second of the commit, and moves a thousand in each transaction.
 */
export async function resumeTarget(
  tx: Tx,
  { kind, targetId }: Pick<DeliveryTarget, 'kind' | 'targetId'>,
): Promise<void> {
  await tx`
    insert into resumed_targets (kind, target_id) values (${kind}, ${targetId})
    on conflict (kind, target_id) do update set next_at = excluded.next_at, since = excluded.since
  `
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
        with taken as (
          delete from dead_letters
          where project_id = ${projectId} and id = ${id}
          returning event_id, kind, target_id
        )
        select
          t.event_id, t.kind, t.target_id,
          exists (
            select
            from event_by_id(${projectId}, t.event_id) e
            where e.deleted_at is null
          ) or exists (select from audit_log a where a.id = t.event_id) as has_event
        from taken t
      `
    : []
  if (!dead) throw new Fault('not_found', 'No dead letter of this project has this id.')
  if (!dead.has_event) {
    throw new Fault('conflict', 'The event of this delivery was deleted. It cannot be sent again.')
  }
  // If the event was enqueued again meanwhile, that delivery becomes due.
  const [pending] = await tx<DeliveryRow[]>`
    insert into outbox as o (id, project_id, event_id, kind, target_id)
    values (${id ?? null}, ${projectId}, ${dead.event_id}, ${dead.kind}, ${dead.target_id})
    on conflict (project_id, event_id, kind, target_id) do update set
      available_at = least(o.available_at, now()), requested_at = now()
      where o.token is null
    returning
      id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
      available_at as next_attempt_at
  `
  if (!pending) throw new Fault('conflict', 'This delivery is in flight right now.')
  return pending
}

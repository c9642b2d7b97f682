import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { KindName } from './kind.ts'
import type { DeliveryRow } from './listing.ts'

/**
 * Lets a delivery that was given up begin again, with a full schedule of attempts and under its own id. Throws
 * `not_found` unless it is a dead letter of the project, and `conflict` when its event is gone.
 */
export async function replay(
  tx: Tx,
  { projectId, id }: { projectId: string; id: string | undefined },
): Promise<DeliveryRow> {
  const [dead] = id
    ? await tx<{ event_id: string; kind: KindName; target_id: string; is_there: boolean }[]>`
        with taken as (
          delete from dead_letters
          where project_id = ${projectId} and id = ${id}
          returning event_id, kind, target_id
        )
        select
          t.event_id, t.kind, t.target_id,
          exists (
            select
            from events e
            where e.project_id = ${projectId} and e.id = t.event_id and e.deleted_at is null
          ) as is_there
        from taken t
      `
    : []
  if (!dead) throw new Fault('not_found', 'No delivery that was given up has this id')
  if (!dead.is_there) {
    throw new Fault('conflict', 'The event of this delivery was deleted: it cannot be told again')
  }
  const { event_id, kind, target_id } = dead
  // Somebody may have sent it again already: then that one becomes due.
  const [pending] = await tx<DeliveryRow[]>`
    insert into outbox as o (id, project_id, event_id, kind, target_id)
    values (${id ?? null}, ${projectId}, ${event_id}, ${kind}, ${target_id})
    on conflict (project_id, event_id, kind, target_id) do update set
      available_at = least(o.available_at, now()), since = now()
      where o.token is null
    returning
      id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
      available_at as next_attempt_at
  `
  if (!pending) throw new Fault('conflict', 'This delivery is being made again right now')
  return pending
}

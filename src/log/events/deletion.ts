import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'

/** Seconds for which the dashboard offers to undo a deletion. */
const UNDO_S = 5
/**
 * Seconds for which a deletion can be undone. It exceeds UNDO_S, because a late click takes time to
 * arrive.
 */
export const UNDO_GRACE_S = 10

/** An event of a project. `id` is its public id. */
export interface EventRef {
  organizationId: string
  projectId: string
  id: string
}

/** Hides an event from every reader until it is restored or purged. Throws `not_found`. */
export async function deleteEvent(
  tx: Tx,
  actor: Actor,
  place: EventRef,
): Promise<{ seq: string; undoUntil: Date }> {
  const { seq } = await getStored(tx, place)
  // No row means that another request deleted the event first.
  const [hidden] = await tx<{ seq: string; undo_until: Date }[]>`
    select h.seq, clock_timestamp() + make_interval(secs => ${UNDO_S}) as undo_until
    from hide_events(${place.projectId}, array[${seq}::bigint]) as h (seq)
  `
  if (!hidden) throw eventNotFound()
  await writeAudit(tx, actor, toEntry('event.deleted', place))
  return { seq: hidden.seq, undoUntil: hidden.undo_until }
}

/**
 * Restores a deleted event. An event that is not deleted stays as it is. Throws `not_found` when
 * the event does not exist, or was deleted more than UNDO_GRACE_S ago.
 */
export async function restoreEvent(
  tx: Tx,
  actor: Actor,
  place: EventRef,
): Promise<{ seq: string }> {
  const { seq, state } = await getStored(tx, place)
  if (state === 'there') return { seq }
  if (state === 'gone') throw eventNotFound()
  const restored = await tx`
    select seq from restore_events(${place.projectId}, array[${seq}::bigint]) as r (seq)
  `
  if (restored.count > 0) await writeAudit(tx, actor, toEntry('event.restored', place))
  // No row means that another request restored the event, or that it was purged.
  else if ((await getStored(tx, place)).state !== 'there') throw eventNotFound()
  return { seq }
}

async function getStored(
  sql: Queryable,
  { projectId, id }: EventRef,
): Promise<{ seq: string; state: 'there' | 'hidden' | 'gone' }> {
  const uuid = parseId('evt', id)
  const [row] = uuid
    ? await sql<{ seq: string; state: 'there' | 'hidden' | 'gone' }[]>`
        select seq, case
            when deleted_at is null then 'there'
            when deleted_at > clock_timestamp() - make_interval(secs => ${UNDO_GRACE_S})
              and deleted_at < clock_timestamp() + interval '1 minute' then 'hidden'
            else 'gone'
          end as state
        from events
        where project_id = ${projectId} and id = ${uuid}
      `
    : []
  if (!row) throw eventNotFound()
  return row
}

function eventNotFound(): Fault {
  return new Fault('not_found', 'No event has this id')
}

function toEntry(action: AuditAction, { organizationId, projectId, id }: EventRef) {
  return { action, organizationId, projectId, target: id }
}

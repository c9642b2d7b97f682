import { writeAudit, type Actor } from '../audit/audit.ts'
import type { AuditAction } from '../audit/words.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { parseId } from '../ids.ts'

/** How long people are offered to undo a deletion. */
const UNDO_S = 5
/** How long it can be undone: a click at the last moment arrives a little later. */
export const GRACE_S = 10

/** An event of a project; the id is the public one. */
export interface EventPlace {
  organizationId: string
  projectId: string
  id: string
}

/** Hides an event from every reader, until it is restored or purged. Throws `not_found`. */
export async function deleteEvent(
  tx: Tx,
  actor: Actor,
  place: EventPlace,
): Promise<{ seq: string; undoUntil: Date }> {
  const { seq } = await getStored(tx, place)
  // What another person hides meanwhile comes back as no row.
  const [hidden] = await tx<{ seq: string; undo_until: Date }[]>`
    select h.seq, clock_timestamp() + make_interval(secs => ${UNDO_S}) as undo_until
    from hide_events(${place.projectId}, array[${seq}::bigint]) as h (seq)
  `
  if (!hidden) throw noEvent()
  await writeAudit(tx, actor, toDeed('event.deleted', place))
  return { seq: hidden.seq, undoUntil: hidden.undo_until }
}

/**
 * Brings a deleted event back as it was. One that is there already stays, so that it does no harm when two undo at once.
 * Throws `not_found` once it is too late.
 */
export async function restoreEvent(
  tx: Tx,
  actor: Actor,
  place: EventPlace,
): Promise<{ seq: string }> {
  const { seq, state } = await getStored(tx, place)
  if (state === 'there') return { seq }
  if (state === 'gone') throw noEvent()
  const restored = await tx`
    select seq from restore_events(${place.projectId}, array[${seq}::bigint]) as r (seq)
  `
  if (restored.count > 0) await writeAudit(tx, actor, toDeed('event.restored', place))
  // Another person was faster; or the purge was, and then nothing is there any more.
  else if ((await getStored(tx, place)).state !== 'there') throw noEvent()
  return { seq }
}

async function getStored(
  sql: Queryable,
  { projectId, id }: EventPlace,
): Promise<{ seq: string; state: 'there' | 'hidden' | 'gone' }> {
  const uuid = parseId('evt', id)
  const [row] = uuid
    ? await sql<{ seq: string; state: 'there' | 'hidden' | 'gone' }[]>`
        select seq, case
            when deleted_at is null then 'there'
            when deleted_at > clock_timestamp() - make_interval(secs => ${GRACE_S}) then 'hidden'
            else 'gone'
          end as state
        from events
        where project_id = ${projectId} and id = ${uuid}
      `
    : []
  if (!row) throw noEvent()
  return row
}

function noEvent(): Fault {
  return new Fault('not_found', 'No event has this id')
}

function toDeed(action: AuditAction, { organizationId, projectId, id }: EventPlace) {
  return { action, organizationId, projectId, target: id }
}

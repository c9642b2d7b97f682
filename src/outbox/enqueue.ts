import { toArray } from '../db/arrays.ts'
import type { Tx } from '../db/sql.ts'
import type { KindName } from './kind.ts'

/** Events that one call takes, and rows that one call changes. */
const MAX_ROWS = 1_000

export interface Resend {
  kind: KindName
  projectId: string
  targetId: string
  /** Uuids, at most 1,000. */
  eventIds: readonly string[]
}

/**
 * Lets a target be told of events (again), with a full schedule of attempts: what is pending becomes due, what was given
 * up lives again. Events that the project does not have are left out; returns how many there were. `wakeWorkers` after
 * the commit saves up to a second.
 */
export async function enqueue(
  tx: Tx,
  { kind, projectId, targetId, eventIds }: Resend,
): Promise<number> {
  if (eventIds.length > MAX_ROWS) throw new RangeError(`More than ${MAX_ROWS} events at once`)
  const rows = await tx`
    with wanted as materialized (
      select e.id
      from events e
      where e.project_id = ${projectId} and e.id = any(${toArray(eventIds)}::uuid[])
        and e.deleted_at is null
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
      -- One that is under way stays under way.
      on conflict (project_id, event_id, kind, target_id) do update set
        available_at = now(), since = now(), attempts = 0, reason = null
        where o.token is null
    )
    select id from wanted
  `
  return rows.length
}

/** Makes pending deliveries of a target due, up to 1,000 of them, as when it is enabled again; returns how many. */
export async function resumeTarget(
  tx: Tx,
  { kind, projectId, targetId }: Omit<Resend, 'eventIds'>,
): Promise<number> {
  const resumed = await tx`
    with found as materialized (
      select o.id
      from outbox o
      where o.kind = ${kind} and o.target_id = ${targetId} and o.project_id = ${projectId}
        and o.token is null and o.available_at > now()
      order by o.available_at, o.id
      limit ${MAX_ROWS}
      for update skip locked
    )
    update outbox o set available_at = now()
    from found f
    where o.id = f.id
  `
  return resumed.count
}

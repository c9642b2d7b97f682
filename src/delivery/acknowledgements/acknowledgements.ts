import { toAuthor } from '../../access/guard/caller.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { writeAudit } from '../../access/audit/audit.ts'
import { Fault } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { FORMER_MEMBER } from '../../log/events/threads.ts'
import { lockLog } from '../../log/channels/channels.ts'
import { enqueueAcknowledged } from '../webhooks/acknowledged.ts'
import type { Acknowledgement, AcknowledgementInput, AcknowledgementStatus } from './schema.ts'

interface EventRef {
  projectId: string
  /** Its public id. */
  eventId: string
}

interface Alarm {
  /** The `threadSeq` of its thread, or the `seq` of an event without one. */
  seq: number
  isOpen: boolean
  /** The event that its timers belong to. */
  firstId: string
  isCritical: boolean
  acknowledgement: Acknowledgement | null
}

/** Returns whether a thread, or an event without one, is acknowledged. Throws `not_found`. */
export async function getAcknowledgement(
  sql: Queryable,
  ref: EventRef,
): Promise<AcknowledgementStatus> {
  const { acknowledgement, isOpen } = await findAlarm(sql, ref)
  return { acknowledgement, isOpen: isOpen || acknowledgement !== null }
}

/**
 * Acknowledges the thread of an event, or an event without one, and cancels its timers. With
 * `minutes`, they go on at the end. The first acknowledgement wins: the later ones
 * return it. `isNew` says whether it is this one. Throws `not_found`, and `conflict` for a thread
 * that has ended and for an event that is no alarm.
 */
export async function acknowledge(
  tx: Tx,
  { projectId, organizationId, actor, admitted }: CallOn<'project'>,
  { eventId, minutes }: AcknowledgementInput & { eventId: string },
): Promise<{ acknowledgement: Acknowledgement; seq: number; isNew: boolean }> {
  // The end of a thread and the step of a timer lock it, too.
  await lockLog(tx, projectId)
  const ref = { projectId, eventId }
  const { seq, isOpen, firstId, isCritical, acknowledgement: first } = await findAlarm(tx, ref)
  if (first) return { acknowledgement: first, seq, isNew: false }
  if (!isOpen) {
    throw new Fault(
      'conflict',
      'Only a thread that is open, a critical event and an alarm of a channel can be acknowledged',
    )
  }
  const { accountId, tokenName } = toAuthor(admitted)
  const uuid = parseId('evt', eventId)!
  const [{ id }] = await tx<[{ id: string }]>`
    insert into acknowledgements as a (
      project_id, thread_seq, id, event_id, account_id, token_name, at, until
    )
    values (
      ${projectId}, ${seq}, new_delivery_id(), ${uuid}, ${accountId}, ${tokenName}, now(),
      now() + ${minutes ?? null}::int * interval '1 minute'
    )
    on conflict (project_id, thread_seq) do update set
      id = excluded.id, event_id = excluded.event_id, account_id = excluded.account_id,
      token_name = excluded.token_name, at = excluded.at, until = excluded.until
    returning id
  `
  await enqueueAcknowledged(tx, { projectId, eventId: uuid }, id)
  if (minutes === undefined) {
    await tx`
      select cancel_timers(array[${projectId}::uuid], array[${firstId}::uuid], 'Acknowledged by a member')
    `
  } else {
    await tx`
      with stages as materialized (
        select o.target_id, greatest(o.requested_at - now(), '0') as remaining
        from outbox o
        where o.project_id = ${projectId} and o.event_id = ${firstId} and o.kind = 'timer'
          and o.target_id between timer_target(${projectId}, 1) and timer_target(${projectId}, 3)
        order by o.id
        for update
      )
      insert into outbox (project_id, event_id, kind, target_id, available_at, requested_at)
      select ${projectId}, ${firstId}, 'timer', u.target_id, u.at, u.at
      from (
          select timer_target(${projectId}, 0) as target_id, '0'::interval as remaining where ${isCritical}
          union all
          select * from stages
        ) t
        cross join lateral (select t.target_id, now() + ${minutes} * interval '1 minute' + t.remaining as at) u
      order by u.target_id
      -- A dispatch can just have started it. A step that is being made loses its lease.
      on conflict (project_id, event_id, kind, target_id) do update set
        token = null, available_at = excluded.available_at, requested_at = excluded.requested_at
    `
  }
  await writeAudit(tx, actor, {
    action: 'event.acknowledged',
    organizationId,
    projectId,
    target: eventId,
    details: { ...(minutes !== undefined && { minutes }) },
  })
  const { acknowledgement } = await findAlarm(tx, ref)
  return { acknowledgement: acknowledgement!, seq, isNew: true }
}

async function findAlarm(sql: Queryable, { projectId, eventId }: EventRef): Promise<Alarm> {
  const [alarm] = await sql<Alarm[]>`
    select
      f.seq::float8 as seq, f.is_open as "isOpen", f.first_id as "firstId", f.level is not distinct from 3 as "isCritical",
      case
        when coalesce((f.acknowledgement).until > now(), (f.acknowledgement).id is not null) then json_build_object(
          'by', coalesce(r.name, (f.acknowledgement).token_name, ${FORMER_MEMBER}),
          'at', to_iso((f.acknowledgement).at), 'until', to_iso((f.acknowledgement).until)
        )
      end as acknowledgement
    from find_alarm(${projectId}, ${parseId('evt', eventId) ?? null}) f
      left join accounts r on r.id = (f.acknowledgement).account_id
    where f.seq is not null
  `
  if (!alarm) throw new Fault('not_found', 'No event has this id')
  return alarm
}

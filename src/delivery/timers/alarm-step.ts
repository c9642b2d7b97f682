import { ROLES, isAtLeast } from '../../access/guard/permissions.ts'
import { parseId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import type { Level } from '../../log/channels/level.ts'
import type { Escalation, StageTo } from '../../log/channels/escalation-schema.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { WITHHELD_REASONS } from '../push/dispatch.ts'
import { findReason, type DeviceState } from '../push/target.ts'

const MINUTE = 60_000
const MAX_LATE_MS = 60 * MINUTE
const MAX_REPEATED_MS = 120 * MINUTE
const DEFAULT_REPEAT_MINUTES = 5
/** The time until a repetition looks again whether the pushes before it were sent. */
const PENDING_MS = 15_000
/** The results of a stage, in its row until it is settled, and in its record. */
const TOLD = 'Members were told'
const NOBODY = 'Nobody is on duty'
const NO_DEVICE = 'No device of them can be told now'

const withheld = (reason: string) => ({ kind: 'withheld', reason }) as const

/** The state of an alarm. Times are in ms before now. */
interface Alarm {
  /** The event that was told aloud last: pushes are about it. */
  alarmId: string
  level: Level | null
  escalation: Escalation | null
  organizationId: string
  channelId: string
  isArchived: boolean
  isOpen: boolean
  isAcknowledged: boolean
  isSilenced: boolean
  hasThread: boolean
  /** True if another thread, which is as urgent, speaks for the storm of this one. */
  isOfStorm: boolean
  /** The reason that the timer's row has of an earlier step. */
  reason: string | null
  /** The time since the event, or since the end of its acknowledgement. */
  ageMs: number
  /** The time since the last push that was sent; null without one. */
  sentMs: number | null
  /** True if a push waits for its first attempt. */
  hasPending: boolean
}

/**
 * Makes the step of a repetition or a stage. Acknowledgements, the ends of threads and deletions
 * lock the log, too, so that none of them commits between what this reads and what it enqueues.
 */
export async function stepAlarm(tx: Tx, attempt: DeliveryAttempt): Promise<DeliveryOutcome> {
  const alarm = await findAlarm(tx, attempt)
  if (!alarm) return { kind: 'cancelled', reason: 'The event was deleted' }
  const { reason } = alarm
  // The step was made before a crash.
  if (reason === TOLD) return { kind: 'done' }
  if (reason?.startsWith(NOBODY) || reason?.startsWith(NO_DEVICE)) return withheld(reason)
  if (attempt.waitedMs > MAX_LATE_MS) return withheld('More than an hour late')
  if (alarm.isAcknowledged) return withheld(WITHHELD_REASONS.acknowledged)
  if (!alarm.isOpen) return withheld('The thread has ended')
  // At its end, a silence tells again of threads alone.
  if (alarm.isSilenced && !alarm.hasThread)
    return { kind: 'postponed', afterMs: MINUTE, reason: 'Silenced', isAlone: true }
  if (alarm.isSilenced) return withheld('Silenced')
  if (alarm.isOfStorm) return withheld(WITHHELD_REASONS.storm)
  const number = Number(attempt.targetId.slice(-4))
  return number === 0 ? repeat(tx, attempt, alarm) : tellStage(tx, attempt, { alarm, number })
}

/** Locks the log and the timer, and reads the alarm. Undefined if one of them is gone. */
async function findAlarm(
  tx: Tx,
  { id, projectId, eventId }: DeliveryAttempt,
): Promise<Alarm | undefined> {
  await tx`select from event_logs where project_id = ${projectId} for share`
  const [timer] = await tx<{ reason: string | null }[]>`
    select reason from outbox where id = ${id} for update
  `
  if (!timer) return undefined
  const [alarm] = await tx<Omit<Alarm, 'reason'>[]>`
    select
      a.id as "alarmId", level_name(f.level) as level, f.escalation, p.organization_id as "organizationId",
      (f.channel).id as "channelId", (f.channel).is_archived as "isArchived", f.is_open as "isOpen",
      coalesce((f.acknowledgement).until > now(), (f.acknowledgement).id is not null) as "isAcknowledged",
      is_silenced(
        project => p.id, channel => (f.channel).id,
        -- An event that speaks for a storm tells of other threads, too.
        thread_key => case when (f.event).telling = 4 then null else (f.event).thread end,
        event_thread_seq => (f.event).thread_seq
      ) as "isSilenced",
      (f.event).thread_seq is not null as "hasThread",
      (f.event).telling is distinct from 4 and exists (
        select
        from events_between(p.id, (f.thread).storm_seq - 1, (f.thread).storm_seq) w
        where w.deleted_at is null and coalesce(w.level, 1) >= coalesce(f.level, 1)
      ) as "isOfStorm",
      extract(epoch from checked_now() - greatest(a.created_at, (f.acknowledgement).until))::float8 * 1000 as "ageMs",
      extract(epoch from clock_timestamp() - s.at)::float8 * 1000 as "sentMs",
      exists (
        select from outbox o
        where o.project_id = p.id and o.event_id = a.id and o.kind = 'push' and o.attempts = 0 and o.reason is null
      ) as "hasPending"
    from projects p
      cross join lateral find_alarm(p.id, ${eventId}) f
      cross join lateral (
        select l.id, l.created_at
        from unnest(array[coalesce((f.thread).loud_seq, (f.event).seq), (f.thread).last_seq]) with ordinality as u (seq, nth)
          cross join lateral events_between(p.id, u.seq - 1, u.seq) l
        where l.deleted_at is null
        order by u.nth
        limit 1
      ) a
      cross join lateral (
        select max(d.at) as at
        from deliveries d
        where d.project_id = p.id and d.event_id = a.id and d.kind = 'push' and d.state = 'delivered'
      ) s
    where p.id = ${projectId} and p.deleted_at is null
  `
  return alarm && { ...alarm, ...timer }
}

/** Pushes again to the devices that were told. */
async function repeat(
  tx: Tx,
  { id, projectId }: DeliveryAttempt,
  { alarmId, level, escalation, hasPending, ageMs, sentMs }: Alarm,
): Promise<DeliveryOutcome> {
  const intervalMs = (escalation?.repeatMinutes ?? DEFAULT_REPEAT_MINUTES) * MINUTE
  // A time in the future means that the clock was set back.
  const leftMs = sentMs === null || sentMs < 0 ? 0 : intervalMs - sentMs
  if (level !== 'critical') return withheld('No longer critical')
  if (ageMs > MAX_REPEATED_MS) return withheld('Repeated for two hours')
  const isDue = !hasPending && leftMs <= 0
  const afterMs = hasPending ? PENDING_MS : leftMs > 0 ? leftMs : intervalMs
  // The next step is late from then on.
  await tx`
    update outbox set requested_at = now() + ${afterMs}::float8 * interval '1 ms' where id = ${id}
  `
  if (isDue) {
    await tx`
      insert into outbox (project_id, event_id, kind, target_id)
      select d.project_id, d.event_id, 'push', d.target_id
      from deliveries d
      where d.project_id = ${projectId} and d.event_id = ${alarmId} and d.kind = 'push'
        and (
          d.state = 'delivered' or starts_with(d.reason, ${WITHHELD_REASONS.silenced})
          or starts_with(d.reason, ${WITHHELD_REASONS.acknowledged})
        )
      on conflict (project_id, event_id, kind, target_id) do nothing
    `
  }
  return { kind: 'postponed', afterMs, reason: 'It repeats the alarm', isAlone: true }
}

/**
 * Tells the members of a stage that were not told yet. If that is nobody, the next stage is due at
 * once; after the last one, the owners are told.
 */
async function tellStage(
  tx: Tx,
  attempt: DeliveryAttempt,
  { alarm, number }: { alarm: Alarm; number: number },
): Promise<DeliveryOutcome> {
  const { id, projectId } = attempt
  // The channel may have fewer stages now.
  const { to } = alarm.escalation?.stages?.[number - 1] ?? {}
  const place = { ...alarm, projectId }
  const accounts = to ? await findAccounts(tx, place, to) : []
  const isTold = (await tell(tx, place, accounts)) > 0
  const reason = isTold
    ? TOLD
    : await passOn(tx, attempt, { place, isAbsent: to === 'onDuty' && accounts.length === 0 })
  await tx`update outbox set reason = ${reason} where id = ${id}`
  return isTold ? { kind: 'done' } : withheld(reason)
}

/** Hastens the next stage, or tells the owners after the last one. Returns what was done. */
async function passOn(
  tx: Tx,
  { projectId, eventId, targetId }: DeliveryAttempt,
  { place, isAbsent }: { place: Place; isAbsent: boolean },
): Promise<string> {
  const reason = isAbsent ? NOBODY : NO_DEVICE
  const hastened = await tx`
    update outbox set
      available_at = case when token is null then least(available_at, now()) else available_at end,
      requested_at = least(requested_at, now())
    where id = (
      select id
      from outbox
      where project_id = ${projectId} and event_id = ${eventId} and kind = 'timer' and target_id > ${targetId}
        and target_id <= timer_target(${projectId}, 3)
      order by target_id
      limit 1
    )
  `
  if (hastened.count > 0) return reason
  const n = await tell(tx, place, await findAccounts(tx, place, { role: 'owner' }))
  return `${reason}. ${n > 0 ? 'The owners were told' : 'No owner can be told now'}`
}

type Place = Pick<Alarm, 'alarmId' | 'channelId' | 'isArchived' | 'level' | 'organizationId'> & {
  projectId: string
}

/** Returns the accounts that a stage tells. Those that are no members any more are left out. */
async function findAccounts(
  tx: Tx,
  { projectId, organizationId }: Place,
  to: StageTo,
): Promise<string[]> {
  const wanted =
    to === 'onDuty'
      ? tx`m.account_id = (select p.on_duty_id from projects p where p.id = ${projectId} and p.on_duty_until > now())`
      : 'role' in to
        ? tx`m.role = any(${toArray(ROLES.filter(role => isAtLeast(role, to.role)))}::text[])`
        : tx`m.account_id = any(${toArray(to.members.map(id => parseId('per', id) ?? null))}::uuid[])`
  const rows = await tx<{ id: string }[]>`
    select m.account_id as id from memberships m where m.organization_id = ${organizationId} and ${wanted}
  `
  return rows.map(({ id }) => id)
}

/**
 * Enqueues pushes of an alarm, also for devices that are then passed over, so that a record says
 * why. Returns how many devices of the accounts are told.
 */
async function tell(tx: Tx, place: Place, accountIds: readonly string[]): Promise<number> {
  const { projectId, organizationId, channelId, alarmId, isArchived, level } = place
  const devices = await tx<
    (Omit<DeviceState, 'isArchived' | 'isSilenced' | 'event'> & {
      id: string
      wasPushed: boolean | null
    })[]
  >`
    select
      s.id, s.is_on as "isOn", false as "isAcknowledged", clock_timestamp() as now,
      is_muted(${projectId}, ${channelId}, d.account_id) as "isMuted",
      coalesce(d.quiet_hours, a.quiet_hours, '[]') as "quietHours", d.mutes, d.lets_critical_through as "letsCriticalThrough",
      lacks_second_factor(o.requires_second_factor, e.is_multi_factor) as "lacksFactor",
      was_pushed(${projectId}, array[${alarmId}::uuid], d.id) as "wasPushed"
    from subscribed_devices(${organizationId}) s
      join push_subscriptions d on d.id = s.id
      join sessions e on e.id = d.session_id
      join accounts a on a.id = s.account_id
      join organizations o on o.id = ${organizationId}
    where s.account_id = any(${toArray(accountIds)}::uuid[])
  `
  const state = { isArchived, isSilenced: false, event: { level } }
  const ids = devices.flatMap(({ id, wasPushed }) => (wasPushed === false ? [id] : []))
  await tx`
    insert into outbox (project_id, event_id, kind, target_id)
    select ${projectId}, ${alarmId}, 'push', u.id
    from unnest(${toArray(ids)}::uuid[]) as u (id)
    order by u.id
    on conflict (project_id, event_id, kind, target_id) do nothing
  `
  return devices.filter(
    // A push that waits may be one that is then withheld.
    device => device.wasPushed || findReason({ ...device, ...state }, place) === undefined,
  ).length
}

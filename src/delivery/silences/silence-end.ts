import { NIL_UUID } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { WITHHELD_SENTENCES } from '../push/dispatch.ts'
import { nextQuiet, type QuietHours } from '../push/quiet-hours.ts'

/** Between two looks at what is still open, and between two times that members are told. */
const PAUSE_MS = 60_000
/** The author is warned so long before the end, or after three quarters of a shorter silence. */
const WARNING_MS = 10 * 60_000

interface Ending {
  now: Date
  starts: Date
  ends: Date | null
  hours: QuietHours[] | null
  isOpen: boolean
}

/**
 * Makes one step of a silence: warns its author, or ends it and tells members of what still fires.
 */
export async function stepSilence(tx: Tx, attempt: DeliveryAttempt): Promise<DeliveryOutcome> {
  const { projectId, eventId: id } = attempt
  const [silence] = await tx<Ending[]>`
    select
      now(), s.starts_at as starts, s.ends_at as ends, s.hours,
      exists (select from open_threads(s.project_id, s.id)) as "isOpen"
    from silences s
    where s.project_id = ${projectId} and s.id = ${id}
    for update
  `
  if (!silence) return { kind: 'cancelled', reason: 'The silence was removed' }
  const { now, starts, ends, hours, isOpen } = silence
  const waitUntil = (at: Date | number): DeliveryOutcome => ({
    kind: 'postponed',
    afterMs: Number(at) - Number(now),
    reason: 'The silence has not ended',
    isAlone: true,
  })
  if (ends === null && isOpen) return waitUntil(Number(now) + PAUSE_MS)
  if (ends && ends > now) {
    const warns = Number(ends) - Math.min(WARNING_MS, (Number(ends) - Number(starts)) / 4)
    if (Number(now) < warns) return waitUntil(warns)
    await warnAuthor(tx, attempt)
    return waitUntil(ends)
  }
  const next = hours && nextQuiet(hours, now)
  // It goes on if its hours are as long as `nextQuiet` looks ahead.
  const isOver = !next || next.from > now
  const [{ isLeft }] = await tx<[{ isLeft: boolean }]>`
    select ${isOver} and tell_after_silence(${projectId}, ${id}, ${WITHHELD_SENTENCES}::text::jsonb) as "isLeft"
  `
  if (isLeft) return waitUntil(Number(now) + PAUSE_MS)
  if (!next) {
    await tx`delete from silences where project_id = ${projectId} and id = ${id}`
    return { kind: 'done' }
  }
  await tx`
    update silences set starts_at = ${next.from}, ends_at = ${next.to}
    where project_id = ${projectId} and id = ${id}
  `
  return waitUntil(next.from)
}

/** Enqueues a push to the devices of the author, once before each end, if anything still fires. */
async function warnAuthor(tx: Tx, { projectId, eventId: id }: DeliveryAttempt): Promise<void> {
  await tx`
    with warned as (
      update outbox o set requested_at = s.ends_at
      from silences s
      where s.project_id = ${projectId} and s.id = ${id}
        and (o.project_id, o.event_id, o.kind, o.target_id) = (s.project_id, s.id, 'timer', s.id)
        and o.requested_at < s.ends_at
      returning s.*
    )
    insert into outbox (project_id, event_id, kind, target_id)
    select ${NIL_UUID}, w.id, 'push', d.id
    from warned w
      join push_subscriptions d on d.account_id = w.account_id and d.is_on
    where exists (select from open_threads(w.project_id, w.id) t where t.state = 3)
    on conflict (project_id, event_id, kind, target_id) do nothing
  `
}

import { toPeriod } from '../../base/period.ts'
import type { Tx } from '../../database/sql.ts'
import { lockLog } from '../../log/channels/channels.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { storeHeartbeat, tell, toAfter, type Place } from './heartbeats.ts'

interface Due extends Place {
  now: Date
  /** Null if it is not expected. */
  dueAt: Date | null
  /** The same, or later after a time without a server. */
  due: Date | null
  periodS: number
  graceS: number
  pingedAt: Date | null
  startedAt: Date | null
  /** The last time without a server, if it was after the last ping. */
  downFrom: Date | null
  downTo: Date
  runs: { at: string; kind: string; exitCode: number | null; tookMs: string | null }[]
}

/**
 * Makes one step of a heartbeat: waits until it is due, or tells that it has not reported. After a
 * time without a server, a job gets its grace to report again. Calls `noteAppended` if it tells.
 */
export async function stepHeartbeat(
  tx: Tx,
  { projectId, eventId: id }: DeliveryAttempt,
  noteAppended: () => void,
): Promise<DeliveryOutcome> {
  // The log comes before the heartbeat. Only an event needs it. `now()` is the same below.
  const overdue = await tx`
    select from heartbeats where project_id = ${projectId} and id = ${id} and due_at <= now()
  `
  if (overdue.count > 0) await lockLog(tx, projectId)
  // Before a check of the clock, a time without a server is not known yet.
  const [found] = await tx<Due[]>`
    select
      h.id, h.project_id as "projectId", h.channel_id as "channelId", h.name, now(), h.period_s as "periodS",
      h.grace_s as "graceS", h.last_ping_at as "pingedAt", h.started_at as "startedAt", c.down_to as "downTo",
      h.due_at as "dueAt",
      case
        when c.checked_at > now() - interval '15 s' or h.due_at is null then due_of(h)
        else greatest(due_of(h), now() + interval '5 s')
      end as due,
      case when c.down_to > greatest(h.last_ping_at, h.started_at) then c.down_from end as "downFrom",
      (
        select coalesce(json_agg(r), '[]')
        from (
          select to_iso(p.at) as at, p.kind, p.exit_code as "exitCode", p.took_ms as "tookMs"
          from heartbeat_pings p
          where p.project_id = h.project_id and p.heartbeat_id = h.id and p.kind in ('success', 'fail')
          order by p.number desc
          limit 3
        ) r
      ) as runs
    from heartbeats h
      left join clock c on true
    where h.project_id = ${projectId} and h.id = ${id}
    for update of h
  `
  if (!found) return { kind: 'cancelled', reason: 'The heartbeat was deleted' }
  const { now, due, pingedAt, startedAt } = found
  // The clock was set back.
  if (Math.max(Number(pingedAt), Number(startedAt)) > Number(now)) {
    await storeHeartbeat(tx, found)
    return { kind: 'postponed', afterMs: 1_000, reason: 'It is not due', isAlone: true }
  }
  const isDown = due !== null && due <= now
  await tx`
    update heartbeats h set
      timer_at = ${isDown ? null : due},
      status = case when ${isDown} then 'down' else h.status end,
      due_at = case when not ${isDown} then h.due_at end,
      extended_to = case when h.due_at <= now() and due_of(h) > now() then due_of(h) else h.extended_to end
    where h.project_id = ${projectId} and h.id = ${id}
  `
  if (due !== null && !isDown) {
    const afterMs = Number(due) - Number(now)
    return { kind: 'postponed', afterMs, reason: 'It is not due', isAlone: true }
  }
  if (isDown) {
    await tell(tx, found, ['firing', 'has not reported', describe(found)])
    noteAppended()
  }
  return { kind: 'done' }
}

/** Describes what was expected, what came, and when this server could not be reached. */
function describe(found: Due): string {
  const { dueAt, periodS, graceS, pingedAt, startedAt, downFrom, downTo, runs } = found
  const isRun = Number(startedAt) + graceS * 1000 === Number(dueAt)
  const lines = runs.map(({ at, kind, exitCode, tookMs }) => {
    const code = exitCode ? ` with exit code ${exitCode}` : ''
    const result = kind === 'success' ? 'succeeded' : `failed${code}`
    return `- ${toText(new Date(at))}: ${result}${toAfter(tookMs)}`
  })
  return [
    startedAt &&
      `A run started at ${toText(startedAt)} and has not ended${isRun ? ` within ${toPeriod(graceS)}` : ''}.`,
    pingedAt && `Last ping: ${toText(pingedAt)}.`,
    dueAt &&
      !isRun &&
      `Expected by ${toText(dueAt)}: every ${toPeriod(periodS)}, with ${toPeriod(graceS)} of grace.`,
    downFrom && `Tidings itself was down from ${toText(downFrom)} to ${toText(downTo)}.`,
    runs.length > 0 && ['\nLast runs:', ...lines].join('\n'),
  ]
    .filter(Boolean)
    .join('\n')
}

function toText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

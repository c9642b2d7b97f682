import type { Sql } from '../../src/database/sql.ts'
import { toArray } from '../../src/database/arrays.ts'
import type { RemovedEvents, RunResult } from './ledger-check.ts'
import type { ReceivingWebhook, WebhookReceiver, Receipt } from './webhook-receiver.ts'

/**
 * A fault of a server or Postgres that may have lost outcomes between start and end, by
 * performance.now().
 */
export interface Fault {
  kind: string
  /** True if Postgres crashed, which may undo a dispatch: its commit does not wait for fsync. */
  isCrash: boolean
  startMs: number
  endMs: number
}

export interface Delivered {
  sql: Sql
  hooks: WebhookReceiver
  targets: readonly ReceivingWebhook[]
  /** The explanation of repeats; without it they are only counted. */
  explained?: Explanation
  leavers?: RemovedEvents
}

export interface Explanation {
  faults: readonly Fault[]
  /** The time-out of an attempt. */
  timeoutMs: number
  leaseMs: number
  /** The time past the lease until another worker has the delivery. */
  slackMs: number
}

/** The time an outcome takes to the database: a fault during it repeats the delivery. */
const SETTLING_MS = 3_000
/** The time that a lease may have run before its attempt begins, and after the time-out ends it. */
const LATE_MS = 1_000

/** Compares the received deliveries with the logs. */
export async function checkDeliveries(delivered: Delivered): Promise<RunResult> {
  const { sql, hooks, targets, explained, leavers = new Map() } = delivered
  const problems = hooks.forgeries.map(text => `a webhook was not genuine: ${text}`)
  const accepted = Map.groupBy(
    hooks.receipts.filter(({ isAccepted }) => isAccepted),
    toPair,
  )
  const events = await sql<{ id: string; project_id: string }[]>`
    select e.id, e.project_id
    from events e
    where e.project_id = any(${toArray(targets.map(({ projectId }) => projectId))}::uuid[])
  `
  const projects = new Map(events.map(event => [event.id, event.project_id]))
  // Events deleted unseen may or may not have been delivered.
  const loose = [...leavers.values()].filter(({ id, isDone }) => !isDone && !projects.has(id))
  for (const { id, projectId } of leavers.values()) projects.set(id, projectId)
  const isLoose = new Set(loose.map(({ id }) => id))
  const table: (string | number)[][] = []
  let pairs = 0
  for (const [nth, { projectId, targetId }] of targets.entries()) {
    let [due, lost, reached, again] = [0, 0, 0, 0]
    for (const [id, owner] of projects) {
      if (owner !== projectId) continue
      const times = accepted.get(`${id} ${targetId}`)?.length ?? 0
      if (times > 0) reached++
      if (times > 1) again += times - 1
      if (isLoose.has(id)) continue
      due++
      if (times > 0) continue
      lost++
      problems.push(`${id} never reached ${targetId}`)
    }
    pairs += due
    table.push([`webhook ${nth}`, due, reached, again, lost])
  }
  const owners = new Map(targets.map(({ projectId, targetId }) => [targetId, projectId]))
  for (const { eventId, targetId } of hooks.receipts) {
    const projectId = projects.get(eventId)
    if (projectId === undefined) problems.push(`${eventId} was delivered and does not exist`)
    else if (projectId !== owners.get(targetId))
      problems.push(`${eventId} does not match ${targetId}`)
  }
  let repeated = 0
  for (const receipts of accepted.values()) {
    repeated += receipts.length - 1
    if (explained) problems.push(...checkRepeats(receipts, explained))
  }
  for (const [pair, receipts] of Map.groupBy(hooks.receipts, toPair)) {
    if (new Set(receipts.map(({ id }) => id)).size > 1) problems.push(`${pair} had several ids`)
  }
  const [record] = await sql<[{ delivered: number; others: number; dead: number }]>`
    select
      count(*) filter (where state = 'delivered')::int as delivered,
      count(*) filter (where state <> 'delivered')::int as others,
      (select count(*)::int from dead_letters where kind = 'webhook') as dead
    from deliveries
    where kind = 'webhook' and event_id <> all(${toArray([...isLoose])}::uuid[])
  `
  if (record.delivered !== pairs || record.others > 0 || record.dead > 0) {
    problems.push(`records say ${JSON.stringify(record)} of ${pairs} deliveries`)
  }
  return {
    figures: { deliveries: pairs, attempts: hooks.receipts.length, repeated },
    problems,
    tables: [{ columns: ['delivered by webhook', 'due', 'reached', 'again', 'lost'], rows: table }],
  }
}

/**
 * Checks that an accepted delivery is repeated only if a fault lost its outcome. The repeat comes
 * after the end of the lease, and by the end of the next lease, or of a later one after another
 * fault. It comes at once if a crash of Postgres undid the dispatch with its lease. The attempt of
 * that lease may arrive after Postgres has restarted, until its time-out: see
 * undone-dispatch.test.ts.
 */
export function checkRepeats(
  receipts: Receipt[],
  { faults, timeoutMs, leaseMs, slackMs }: Explanation,
): string[] {
  return receipts.slice(1).flatMap((later, nth) => {
    const { atMs } = receipts[nth]! // Every later receipt has an earlier one.
    const isCutOff = faults.some(
      ({ startMs, endMs }) => startMs - SETTLING_MS <= atMs && atMs <= endMs + SETTLING_MS,
    )
    const isInTime = faults.some(
      ({ startMs, endMs }) =>
        startMs <= later.atMs && later.atMs <= Math.max(atMs, endMs) + leaseMs + slackMs,
    )
    const isUndone = faults.some(
      ({ isCrash, startMs, endMs }) =>
        isCrash &&
        toCreatedMs(later.eventId) <= endMs &&
        startMs - SETTLING_MS <= atMs &&
        atMs <= endMs + timeoutMs + LATE_MS &&
        startMs <= later.atMs,
    )
    const tookMs = Math.round(later.atMs - atMs)
    // A fault that delayed an attempt after its claim used up as much of the lease.
    const heldUpMs = Math.max(
      0,
      ...faults.map(fault => Math.min(fault.endMs, atMs) - Math.max(fault.startMs, atMs - leaseMs)),
    )
    if (isInTime && isUndone) return []
    if (isInTime && isCutOff && tookMs >= leaseMs - timeoutMs - LATE_MS - heldUpMs) return []
    const around = faults
      .filter(fault => fault.startMs <= later.atMs && atMs - leaseMs - slackMs <= fault.endMs)
      .map(({ kind, ...fault }) => {
        const [startMs, endMs] = [fault.startMs, fault.endMs].map(ms => Math.round(ms - atMs))
        return `${kind} from ${startMs} to ${endMs} ms`
      })
    return [
      `${toPair(later)} was repeated after ${tookMs} ms without an explanation. Faults: ${around.join(', ') || 'none'}`,
    ]
  })
}

/** Returns when an event was created, by performance.now(), from its id: a uuid of version 7. */
function toCreatedMs(eventId: string): number {
  return Number.parseInt(eventId.replaceAll('-', '').slice(0, 12), 16) - performance.timeOrigin
}

function toPair({ eventId, targetId }: Receipt): string {
  return `${eventId} ${targetId}`
}

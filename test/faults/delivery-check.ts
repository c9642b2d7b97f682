import type { Sql } from '../../src/db/sql.ts'
import { toArray } from '../../src/db/arrays.ts'
import type { Leavers, Verdict } from './check.ts'
import type { Hook, Hooks, Receipt } from './hooks.ts'

/** Something that was done to a server or to Postgres, and may have cut off outcomes from start to end; times are of performance.now. */
export interface Fault {
  kind: string
  startMs: number
  endMs: number
}

export interface Delivered {
  sql: Sql
  hooks: Hooks
  targets: readonly Hook[]
  /** What explains repeats; without it they are counted alone. */
  explained?: Explanation
  leavers?: Leavers
}

interface Explanation {
  faults: readonly Fault[]
  leaseMs: number
  /** How long past the lease until somebody else has the job. */
  slackMs: number
}

/** How long an outcome is under way to the database: what a fault cuts off then is done again. */
const SETTLING_MS = 3_000
/** How much of a lease an attempt may have used up before it was accepted. */
const ATTEMPT_MS = 3_000

/** Compares what was received with the logs. */
export async function checkDeliveries(delivered: Delivered): Promise<Verdict> {
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
  // What left the log unseen may have been told of or not.
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
    if (projectId === undefined) problems.push(`${eventId} was told of and does not exist`)
    else if (projectId !== owners.get(targetId)) problems.push(`${eventId} is not for ${targetId}`)
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
 * What was accepted is sent again only when a fault kept its outcome from being written down, not before the lease has
 * ended, and by the end of the next one: or of a later one, where another fault came between.
 */
function checkRepeats(receipts: Receipt[], { faults, leaseMs, slackMs }: Explanation): string[] {
  return receipts.slice(1).flatMap((later, nth) => {
    const { atMs } = receipts[nth]! // There is one before each later one.
    const isCutOff = faults.some(
      ({ startMs, endMs }) => startMs - SETTLING_MS <= atMs && atMs <= endMs + SETTLING_MS,
    )
    const isInTime = faults.some(
      ({ startMs, endMs }) =>
        startMs <= later.atMs && later.atMs <= Math.max(atMs, endMs) + leaseMs + slackMs,
    )
    const isExplained = isCutOff && isInTime
    const tookMs = Math.round(later.atMs - atMs)
    // A fault that held an attempt up after its claim used up as much of the lease before anything was accepted.
    const heldUpMs = Math.max(
      0,
      ...faults.map(fault => Math.min(fault.endMs, atMs) - Math.max(fault.startMs, atMs - leaseMs)),
    )
    if (isExplained && tookMs >= leaseMs - ATTEMPT_MS - heldUpMs) return []
    return [`${toPair(later)} came again after ${tookMs} ms, for no reason`]
  })
}

function toPair({ eventId, targetId }: Receipt): string {
  return `${eventId} ${targetId}`
}

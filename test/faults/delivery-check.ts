import type { Sql } from '../../src/db/sql.ts'
import type { Verdict } from './check.ts'
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
  const { sql, hooks, targets } = delivered
  const problems = hooks.forgeries.map(text => `a webhook was not genuine: ${text}`)
  const accepted = Map.groupBy(
    hooks.receipts.filter(({ isAccepted }) => isAccepted),
    toPair,
  )
  const events = await sql<{ id: string; project_id: string }[]>`select id, project_id from events`
  const projects = new Map(events.map(event => [event.id, event.project_id]))
  let pairs = 0
  for (const { id, project_id } of events) {
    for (const { projectId, targetId } of targets) {
      if (projectId !== project_id) continue
      pairs++
      if (!accepted.has(`${id} ${targetId}`)) problems.push(`${id} never reached ${targetId}`)
    }
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
    problems.push(...checkRepeats(receipts, delivered))
  }
  for (const [pair, receipts] of Map.groupBy(hooks.receipts, toPair)) {
    if (new Set(receipts.map(({ id }) => id)).size > 1) problems.push(`${pair} had several ids`)
  }
  const [record] = await sql<[{ delivered: number; others: number; dead: number }]>`
    select
      count(*) filter (where state = 'delivered')::int as delivered,
      count(*) filter (where state <> 'delivered')::int as others,
      (select count(*)::int from dead_letters) as dead
    from deliveries
  `
  if (record.delivered !== pairs || record.others > 0 || record.dead > 0) {
    problems.push(`records say ${JSON.stringify(record)} of ${pairs} deliveries`)
  }
  return { figures: { deliveries: pairs, attempts: hooks.receipts.length, repeated }, problems }
}

/**
 * What was accepted is sent again only when a fault kept its outcome from being written down, not before the lease has
 * ended, and by the end of the next one: or of a later one, where another fault came between.
 */
function checkRepeats(receipts: Receipt[], { faults, leaseMs, slackMs }: Delivered): string[] {
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
    if (isExplained && tookMs >= leaseMs - ATTEMPT_MS) return []
    return [`${toPair(later)} came again after ${tookMs} ms, for no reason`]
  })
}

function toPair({ eventId, targetId }: Receipt): string {
  return `${eventId} ${targetId}`
}

import type { Sql } from '../../src/database/sql.ts'
import { toArray } from '../../src/database/arrays.ts'
import type { RemovedEvents, RunResult } from './ledger-check.ts'
import type { ReceivingWebhook, WebhookReceiver, Receipt } from './webhook-receiver.ts'

interface Delivered {
  sql: Sql
  hooks: WebhookReceiver
  targets: readonly ReceivingWebhook[]
  leavers?: RemovedEvents
}

/** Compares the received deliveries with the logs. */
export async function checkDeliveries(delivered: Delivered): Promise<RunResult> {
  const { sql, hooks, targets, leavers = new Map() } = delivered
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
  let pairs = 0
  for (const { projectId, targetId } of targets) {
    for (const [id, owner] of projects) {
      if (owner !== projectId || isLoose.has(id)) continue
      pairs++
      if (!accepted.has(`${id} ${targetId}`)) problems.push(`${id} never reached ${targetId}`)
    }
  }
  const owners = new Map(targets.map(({ projectId, targetId }) => [targetId, projectId]))
  for (const { eventId, targetId } of hooks.receipts) {
    const projectId = projects.get(eventId)
    if (projectId === undefined) problems.push(`${eventId} was delivered and does not exist`)
    else if (projectId !== owners.get(targetId))
      problems.push(`${eventId} does not match ${targetId}`)
  }
  let repeated = 0
  for (const receipts of accepted.values()) repeated += receipts.length - 1
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
  }
}

function toPair({ eventId, targetId }: Receipt): string {
  return `${eventId} ${targetId}`
}

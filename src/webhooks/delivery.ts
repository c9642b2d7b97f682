import { createBatcher, type Batcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import type { Egress, EgressResult } from '../egress/egress.ts'
import { GRACE_S } from '../events/deletion.ts'
import { findEventsJson } from '../events/read.ts'
import { newId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { keepAttempt, keepSuccesses, type Made } from './attempts.ts'
import { keepFailure } from './failures.ts'
import { findReceivers, toReceiver, type Receiver } from './receiver.ts'
import { toEventRequest, toMessageId } from './message.ts'
import { keepAttempted } from '../outbox/keeping.ts'
import type { Outcome } from '../outbox/kind.ts'
import type { Attempted } from './kind.ts'
import type { Shaped } from './presets.ts'
import { CONTENT_TYPE, sign } from './signing.ts'
import { toVerdict, type Verdict } from './verdict.ts'

/** For headers and body of one attempt. */
export const WEBHOOK_TIMEOUT_MS = 15_000

/** Events may be large. */
const MAX_READ = 32
const MAX_KEPT = 200
const MAX_WAITING = 5_000
const BUSY_MS = 5_000
/** After three days nothing waits any more. */
const PATIENCE_MS = 3 * 86_400_000
const DISABLED_MS = 3_600_000
const MAX_DISABLED_MS = 30 * 86_400_000

export interface DeliveryParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
}

/** Makes one attempt to tell a webhook of an event, and keeps what came of it. Nothing is held open meanwhile. */
export type Sender = (job: Attempted, signal?: AbortSignal) => Promise<Outcome>

/** What there is to an attempt, as of now: undefined where it is gone. */
interface Told {
  receiver: Receiver | undefined
  eventJson: string | undefined
}

interface SenderParts extends DeliveryParts {
  reads: Batcher<Attempted, Told>
  /** Whether it was kept. */
  successes: Batcher<Made, boolean>
}

/** Attempts of one sender share their statements: those of the same moment read, and keep their successes, together. */
export function createSender(parts: DeliveryParts): Sender {
  const { pool, secrets } = parts
  const reads = createBatcher({
    async run(jobs: Attempted[]) {
      const [receivers, events] = await pool.run(sql =>
        Promise.all([findReceivers(sql, jobs, { mayProbe: true }), findEventsJson(sql, jobs)]),
      )
      return jobs.map((_, nth) => ({ receiver: receivers[nth], eventJson: events[nth] }))
    },
    toResult: ({ receiver, eventJson }, job) => ({
      receiver: receiver && toReceiver(receiver, job, secrets),
      eventJson,
    }),
    maxJobs: MAX_READ,
    maxWaiting: MAX_WAITING,
  })
  const successes = createBatcher({
    async run(made: Made[]) {
      const kept = await pool.run(sql => keepSuccesses(sql, made))
      return made.map(({ id }) => kept.has(id))
    },
    toResult: isKept => isKept,
    maxJobs: MAX_KEPT,
    maxWaiting: MAX_WAITING,
  })
  const all = { ...parts, reads, successes }
  return (job, signal) => sendWebhook(all, job, signal)
}

async function sendWebhook(
  parts: SenderParts,
  job: Attempted,
  signal?: AbortSignal,
): Promise<Outcome> {
  const { pool, reads, successes } = parts
  const { receiver, eventJson } = await reads.add(job)
  if (!receiver) return { kind: 'cancelled', reason: 'The webhook was deleted' }
  const obstacle = findObstacle(receiver, job)
  if (obstacle) return obstacle
  if (eventJson === undefined) {
    const mayReturn = await pool.run(sql => isHidden(sql, job))
    return mayReturn
      ? postponed(GRACE_S * 1000, 'The event is hidden')
      : { kind: 'cancelled', reason: 'The event was deleted' }
  }

  const id = toMessageId(job.eventId, job.targetId)
  const request = toEventRequest(receiver, eventJson, receiver.origin)
  const result = await post(parts.egress, receiver, { ...request, id }, signal)
  const verdict = toVerdict(result, receiver.nowMs)
  if (verdict.kind === 'unsent') {
    return postponed(BUSY_MS, verdict.reason)
  }
  const made: Made = {
    id: newId('att').uuid,
    projectId: job.projectId,
    webhookId: job.targetId,
    eventId: job.eventId,
    number: job.attempt,
    startedAt: new Date(receiver.nowMs),
    preset: receiver.preset,
    request,
    result,
    verdict,
  }
  const isDelivered = verdict.kind === 'delivered'
  await keepAttempted(async () => {
    if (isDelivered && (await successes.add(made))) return
    await transact(pool, async tx => {
      await keepAttempt(tx, made)
      if (!isDelivered) await keepFailure(tx, receiver, verdict)
    })
  })
  return toOutcome(verdict)
}

/** Posts a message to a receiver, signed for this moment. */
export function post(
  egress: Egress,
  { nowMs, signingSecrets }: Receiver,
  { url, body, id }: Shaped & { id: string },
  signal?: AbortSignal,
): Promise<EgressResult> {
  const headers = sign({ id, timestampMs: nowMs, body }, signingSecrets)
  return egress.send({
    url,
    body,
    headers: { 'Content-Type': CONTENT_TYPE, ...headers },
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    signal,
  })
}

/** Why nothing is sent to it now, if so. */
function findObstacle(
  { nowMs, disabledAtMs, isProbe, pausedUntilMs }: Receiver,
  { attempt, waitedMs }: Attempted,
): Outcome | undefined {
  if (disabledAtMs !== null) {
    return nowMs - disabledAtMs > MAX_DISABLED_MS
      ? { kind: 'cancelled', reason: 'The webhook was disabled for 30 days' }
      : postponed(DISABLED_MS, 'The webhook is disabled', MAX_DISABLED_MS + PATIENCE_MS)
  }
  if (pausedUntilMs === null || isProbe) return undefined
  // Each is attempted once at least: what has only waited until its end is not given up without a try.
  if (attempt === 1 && waitedMs > PATIENCE_MS) return undefined
  // Where a pause is over and another has become the probe, its outcome is worth waiting for.
  return postponed(Math.max(pausedUntilMs - nowMs, BUSY_MS), 'The webhook is paused')
}

function postponed(afterMs: number, reason: string, withinMs = PATIENCE_MS): Outcome {
  return { kind: 'postponed', afterMs, withinMs, reason }
}

/** Whether a deleted event may still be brought back. */
async function isHidden(sql: Queryable, { projectId, eventId }: Attempted): Promise<boolean> {
  const rows = await sql`
    select id
    from events
    where project_id = ${projectId} and id = ${eventId}
      -- Null where it was brought back just now.
      and deleted_at > now() - make_interval(secs => ${GRACE_S}) is not false
  `
  return rows.count > 0
}

function toOutcome(verdict: Exclude<Verdict, { kind: 'unsent' }>): Outcome {
  if (verdict.kind === 'delivered') return { kind: 'done' }
  if (verdict.kind === 'gone') return { kind: 'gone', reason: verdict.reason }
  const { reason, afterMs } = verdict
  return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
}

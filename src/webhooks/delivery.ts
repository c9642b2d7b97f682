import { writeAudit, SERVER } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import type { Egress, EgressResult } from '../egress/egress.ts'
import { GRACE_S } from '../events/deletion.ts'
import { findEventJson } from '../events/read.ts'
import { newId, toId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { keepAttempt, type Made } from './attempts.ts'
import { FAILED_FOR_DAYS, isHopeless, toFailed, type Breaker } from './breaker.ts'
import { findReceiver, type Receiver } from './receiver.ts'
import { toEventRequest, toMessageId } from './message.ts'
import { keepAttempted } from '../outbox/keeping.ts'
import type { Outcome } from '../outbox/kind.ts'
import type { Attempted } from './kind.ts'
import type { Shaped } from './presets.ts'
import { CONTENT_TYPE, sign } from './signing.ts'
import { toVerdict, type Verdict } from './verdict.ts'

/** For headers and body of one attempt. */
export const WEBHOOK_TIMEOUT_MS = 15_000

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
export async function sendWebhook(
  parts: DeliveryParts,
  job: Attempted,
  signal?: AbortSignal,
): Promise<Outcome> {
  const { pool, secrets } = parts
  const [receiver, eventJson] = await pool.run(sql =>
    Promise.all([
      findReceiver(sql, { ...job, mayProbe: true }, secrets),
      findEventJson(sql, job.projectId, toId('evt', job.eventId)),
    ]),
  )
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
  await keepAttempted(() =>
    verdict.kind === 'delivered'
      ? pool.run(sql => keepAttempt(sql, made))
      : transact(pool, async tx => {
          await keepAttempt(tx, made)
          await keepFailure(tx, receiver, verdict)
        }),
  )
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

async function keepFailure(tx: Tx, receiver: Receiver, verdict: Verdict): Promise<void> {
  const { projectId, id } = receiver
  const [row] = await tx<
    {
      failures: number
      failing_since: Date | null
      pauses: number
      paused_until: Date | null
      is_enabled: boolean
      now: Date
    }[]
  >`
    select failures, failing_since, pauses, paused_until, disabled_at is null as is_enabled,
      clock_timestamp() as now
    from webhooks
    where project_id = ${projectId} and id = ${id} and deleted_at is null
    for no key update
  `
  if (!row) return
  const nowMs = row.now.getTime()
  const before: Breaker = {
    failures: row.failures,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    pauses: row.pauses,
    pausedUntilMs: row.paused_until?.getTime() ?? null,
  }
  const breaker = toFailed(before, receiver.isProbe, nowMs)
  const hopeless = isHopeless(breaker, nowMs) ? FAILED_FOR_DAYS : undefined
  const reason = row.is_enabled ? (verdict.kind === 'gone' ? verdict.reason : hopeless) : undefined
  await tx`
    update webhooks set
      failures = ${breaker.failures},
      failing_since = ${toDate(breaker.failingSinceMs)},
      pauses = ${breaker.pauses},
      paused_until = ${toDate(breaker.pausedUntilMs)},
      disabled_at = case when ${reason ?? null}::text is null then disabled_at else now() end,
      disabled_reason = coalesce(${reason ?? null}, disabled_reason)
    where project_id = ${projectId} and id = ${id}
  `
  if (reason === undefined) return
  await writeAudit(tx, SERVER, {
    action: 'webhook.disabled',
    organizationId: receiver.origin.organization.id,
    projectId,
    target: toId('whk', id),
    details: { reason },
  })
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

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

import { SERVER, writeAudit } from '../../access/audit/audit.ts'
import { toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { toBodyText, type EgressResult } from '../../http/egress/egress.ts'
import { toAttempt, type AttemptRow } from './attempts.ts'
import { noteSuccess, pauseTarget } from '../outbox/targets.ts'
import {
  FAILING_FOR_DAYS,
  isLimited,
  shouldDisable,
  toBreakerAfterFailure,
  toBreaker,
  toBreakerAfterLimit,
  type BreakerRow,
} from './circuit-breaker.ts'
import { hashBody } from './message.ts'
import type { WebhookOutcome } from './outcome.ts'
import type { Preset, WebhookRequest } from './presets.ts'
import type { Attempt } from './webhook-schema.ts'
import type { WebhookTarget } from './target.ts'
import { pausedUntil } from './webhooks.ts'

/** An attempt whose request was sent. Ids are uuids. */
export interface CompletedAttempt {
  id: string
  projectId: string
  webhookId: string
  kind: Attempt['kind']
  /** The uuid of the event; null for a test. */
  eventId: string | null
  /** True if the request named a user. */
  hasUser: boolean
  number: number
  startedAt: Date
  preset: Preset
  /** The generation of the webhook that was called. */
  generation: number
  request: WebhookRequest
  answer: Answer
  outcome: WebhookOutcome
}

/** The recorded part of a response, or why there was none. */
type Answer = Pick<AttemptRow, 'status' | 'error' | 'response' | 'latencyMs'>

/** Returns what is recorded of a result, so that nothing else of it stays in memory. */
export function toAnswer(result: EgressResult): Answer {
  const { latencyMs } = result
  if ('error' in result) return { status: null, error: result.error, response: null, latencyMs }
  return { status: result.status, error: null, response: toBodyText(result.body), latencyMs }
}

/**
 * Stores an attempt. A success resets the failure counters, unless the webhook was changed since it
 * was called. Returns the attempt as the API shows it.
 */
export async function storeAttempt(tx: Tx, made: CompletedAttempt): Promise<Attempt> {
  const { projectId, webhookId, generation, outcome } = made
  if (outcome.kind === 'delivered') {
    const same = await tx`
      update webhooks set failures = 0, failing_since = null, pauses = 0
      where project_id = ${projectId} and id = ${webhookId} and generation = ${generation}
    `
    // An endpoint may have asked to wait after it took this message. A test is sent all the same,
    // and ends the wait.
    const target = { kind: 'webhook', targetId: webhookId } as const
    if (same.count > 0) await noteSuccess(tx, target, made.kind === 'webhook.test')
  }
  await insertAttempts(tx, [made], { onlyFree: false })
  return toAttempt(toRow(made))
}

/**
 * Stores successful attempts in one statement. It leaves out webhooks with failures to reset, and
 * webhooks that are locked, because one locked row would delay all others. Returns the ids of the
 * stored attempts; store the others with `storeAttempt`.
 */
export function storeSuccessfulAttempts(
  sql: Queryable,
  made: readonly CompletedAttempt[],
): Promise<Set<string>> {
  return insertAttempts(sql, made, { onlyFree: true })
}

/** For this long after a wait that a receiver asked for, it gets one attempt at a time. */
const SINGLE_MS = 60_000

/**
 * Counts a failure of a webhook, or makes it wait as its receiver asked. Ten failures in a row
 * pause it. It is disabled if its endpoint is gone, or has only failed for five days. Returns false
 * if the webhook was changed or deleted since it was called.
 */
export async function countFailure(
  tx: Tx,
  { projectId, id, generation, pauses, context }: WebhookTarget,
  outcome: WebhookOutcome,
): Promise<boolean> {
  const [row] = await tx<(BreakerRow & { is_enabled: boolean; now: Date; checked_now: Date })[]>`
    select w.failures, w.failing_since, w.pauses, ${pausedUntil(tx)} as paused_until,
      w.disabled_at is null as is_enabled, clock_timestamp() as now, checked_now()
    from webhooks w
    where w.project_id = ${projectId} and w.id = ${id} and w.generation = ${generation} and w.deleted_at is null
    for no key update
  `
  if (!row) return false
  const nowMs = row.now.getTime()
  const before = toBreaker(row)
  const failed = outcome.kind === 'limited' ? before : toBreakerAfterFailure(before, pauses, nowMs)
  const asksToWait =
    outcome.kind === 'limited' || (outcome.kind === 'failed' && outcome.afterMs !== undefined)
  const breaker = asksToWait ? toBreakerAfterLimit(failed, outcome.afterMs, nowMs) : failed
  const hopeless = shouldDisable(failed, row.checked_now.getTime()) ? FAILING_FOR_DAYS : null
  const mayDisable = row.is_enabled && outcome.kind !== 'limited'
  const reason = mayDisable ? (outcome.kind === 'gone' ? outcome.reason : hopeless) : null
  await tx`
    update webhooks set
      failures = ${breaker.failures},
      failing_since = ${toDate(breaker.failingSinceMs)},
      pauses = ${breaker.pauses},
      disabled_at = case when ${reason}::text is null then disabled_at else now() end,
      disabled_reason = coalesce(${reason}, disabled_reason)
    where project_id = ${projectId} and id = ${id}
  `
  const target = { kind: 'webhook', targetId: id } as const
  const untilMs = breaker.pausedUntilMs
  if (untilMs !== null && untilMs !== before.pausedUntilMs) {
    const singleUntil = isLimited(breaker) ? toIso(untilMs + SINGLE_MS) : 'infinity'
    await pauseTarget(tx, target, toIso(untilMs), singleUntil)
  }
  if (reason !== null) {
    await pauseTarget(tx, target, 'infinity')
    await writeAudit(tx, SERVER, {
      action: 'webhook.disabled',
      organizationId: context.organization.id,
      projectId,
      target: toId('whk', id),
      details: { reason },
    })
  }
  return true
}

/** Inserts attempts, and returns their ids. `onlyFree` is that of `storeSuccessfulAttempts`. */
async function insertAttempts(
  sql: Queryable,
  made: readonly CompletedAttempt[],
  { onlyFree }: { onlyFree: boolean },
): Promise<Set<string>> {
  const rows = made.map(one => ({ ...one, ...toRow(one) }))
  const column = (value: (row: (typeof rows)[number]) => string | number | boolean | null) =>
    toArray(rows.map(value))
  const inserted = await sql<{ id: string }[]>`
    select insert_webhook_attempts(
      project_ids => ${column(({ projectId }) => projectId)}::uuid[],
      ids => ${column(({ id }) => id)}::uuid[],
      webhook_ids => ${column(({ webhookId }) => webhookId)}::uuid[],
      event_ids => ${column(({ eventId }) => eventId)}::uuid[],
      kinds => ${column(({ kind }) => kind)}::text[],
      numbers => ${column(({ number }) => number)}::int[],
      outcomes => ${column(({ outcome }) => outcome)}::text[],
      statuses => ${column(({ status }) => status)}::int[],
      errors => ${column(({ error }) => error)}::text[],
      reasons => ${column(({ reason }) => reason)}::text[],
      responses => ${column(({ response }) => response)}::text[],
      latencies_ms => ${column(({ latencyMs }) => latencyMs)}::int[],
      starts => ${column(({ startedAt }) => startedAt.toISOString())}::timestamptz[],
      hosts => ${column(({ request }) => new URL(request.url).host)}::text[],
      presets => ${column(({ preset }) => preset)}::text[],
      body_hashes => ${column(({ request }) => `\\x${hashBody(request.body).toString('hex')}`)}::bytea[],
      has_users => ${column(({ hasUser }) => hasUser)}::boolean[],
      only_free => ${onlyFree}
    ) as id
  `
  return new Set(inserted.map(({ id }) => id))
}

function toRow({
  id,
  kind,
  eventId,
  number,
  startedAt,
  answer,
  outcome,
}: CompletedAttempt): AttemptRow {
  return {
    ...answer,
    id,
    kind,
    eventId,
    // The response to a test, which has no event, is the only one that is made of this row.
    eventTitle: null,
    number,
    outcome: outcome.kind === 'delivered' ? 'delivered' : 'failed',
    reason: outcome.reason,
    startedAt,
  }
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

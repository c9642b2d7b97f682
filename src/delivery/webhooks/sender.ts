import { Fault } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { createBatcher } from '../../database/batch.ts'
import { type Pool, transact } from '../../database/pool.ts'
import { rememberOpened, type Secrets } from '../../database/secrets/secrets.ts'
import type { Egress } from '../../http/egress/egress.ts'
import {
  tryToRecord,
  type DeliveryAttempt,
  type DispatchingKind,
  type DeliveryOutcome,
  type Postponed,
} from '../outbox/delivery-kind.ts'
import { WEBHOOK_SCHEDULE_MS } from '../outbox/schedule.ts'
import { HIDDEN } from '../outbox/settlement.ts'
import { dispatchWebhooks, explainNoWebhookDelivery, sweepWebhooks } from './dispatch.ts'
import { hasUser, toEventRequest, toMessageId } from './message.ts'
import { toWebhookOutcome, type WebhookOutcome } from './outcome.ts'
import {
  countFailure,
  storeAttempt,
  storeSuccessfulAttempts,
  toAnswer,
  type CompletedAttempt,
} from './recording.ts'
import { CONTENT_TYPE, signMessage } from './signing.ts'
import { findWebhookTargets, openWebhookTarget, type WebhookTarget } from './target.ts'
import { getWebhookNames } from './webhooks.ts'

/** The timeout of one attempt, for headers and body together. */
const WEBHOOK_TIMEOUT_MS = 15_000
/** How long an attempt waits for the body. The outcome is known from the status. */
const MAX_BODY_MS = 1_000

/** The most attempts that one read serves. Events can be large. */
const MAX_READ = 32
const MAX_STORED = 400
/** How long successes are collected to be stored together. Nothing waits for them. */
const COLLECT_MS = 20
/** The wait if it could not be stored. */
const LIMITED_MS = 5_000
const BUSY_MS = 5_000
/** For this long, a 429 costs a delivery no attempt. It is longer than the schedule can take. */
const MAX_LIMITED_MS = 4 * 86_400_000
const DISABLED_MS = 3_600_000
const MAX_DISABLED_MS = 30 * 86_400_000

export interface SenderParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
  /** Called when events are to be matched with the views of webhooks. */
  onViews?(): void
}

/** The fields of a delivery that an attempt needs. */
export type WebhookAttempt = Omit<DeliveryAttempt, 'id' | 'isLast' | 'begin'> &
  Partial<Pick<DeliveryAttempt, 'begin'>>

/**
 * Makes one attempt to deliver an event to a webhook, and stores its outcome. It holds no database
 * connection during the request.
 */
export type WebhookSender = (
  attempt: WebhookAttempt,
  signal?: AbortSignal,
) => Promise<DeliveryOutcome>

/** Creates the delivery kind for webhooks. */
export function createWebhookKind(parts: SenderParts): DispatchingKind {
  return {
    name: 'webhook',
    dispatch: (sql, request) => dispatchWebhooks(sql, request, parts.onViews),
    leasesNew: true,
    send: createWebhookSender(parts),
    getTargetNames: getWebhookNames,
    explainNoDelivery: explainNoWebhookDelivery,
    sweepTargets: sweepWebhooks,
    schedule: WEBHOOK_SCHEDULE_MS,
    perTarget: 8,
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    leaseMs: 2 * WEBHOOK_TIMEOUT_MS,
  }
}

/**
 * Creates a sender. Concurrent attempts share the statements that read them. Successes of 20 ms
 * share the statement that stores them, while the next attempts are made.
 */
export function createWebhookSender(parts: SenderParts): WebhookSender {
  const { pool } = parts
  const secrets = { open: rememberOpened(parts.secrets) }
  const reads = createBatcher({
    run: (attempts: WebhookAttempt[]) => pool.run(sql => findWebhookTargets(sql, attempts)),
    toResult: (found, attempt) => ({
      ...found,
      target: found && openWebhookTarget(found.row, attempt, secrets),
    }),
    maxJobs: MAX_READ,
  })
  const successes = createBatcher({
    async run(made: CompletedAttempt[]) {
      const stored = await pool.run(sql => storeSuccessfulAttempts(sql, made))
      return made.map(({ id }) => stored.has(id))
    },
    toResult: isStored => isStored,
    maxJobs: MAX_STORED,
    collectMs: COLLECT_MS,
  })

  return async (attempt, signal) => {
    const { target, eventJson, eventId = attempt.eventId, acknowledged } = await reads.add(attempt)
    if (!target) return { kind: 'cancelled', reason: 'The webhook was deleted' }
    if (eventJson === undefined) return HIDDEN
    const earlyOutcome = findEarlyOutcome(target)
    if (earlyOutcome) return earlyOutcome
    let request
    try {
      request = toEventRequest(target, eventJson, target.context, acknowledged)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { kind: 'gone', reason: error.message }
    }
    const made = await makeAttempt(
      parts.egress,
      target,
      {
        id: newId('att').uuid,
        messageId: toMessageId(attempt.eventId, attempt.targetId),
        eventId,
        kind: acknowledged ? 'event.acknowledged' : 'event.created',
        hasUser: hasUser(eventJson),
        number: attempt.attempt,
        request,
      },
      { signal, begin: attempt.begin },
    )
    const { outcome } = made
    const { waitedMs } = attempt
    let counted: boolean | undefined
    if (outcome.kind === 'unsent') return toDeliveryOutcome(outcome, { isStored: false, waitedMs })
    const store = () =>
      transact(pool, async tx => {
        await storeAttempt(tx, made)
        if (outcome.kind !== 'delivered') counted = await countFailure(tx, target, outcome)
      })
    // A success that ends failures or a pause counts at once.
    if (outcome.kind === 'delivered' && !target.hasFailures) {
      const recorded = tryToRecord(async () => {
        if (!(await successes.add(made))) await store()
      })
      return { kind: 'done', recorded }
    }
    await tryToRecord(store)
    if (counted === false) return CHANGED
    return toDeliveryOutcome(outcome, { isStored: counted === true, waitedMs })
  }
}

/**
 * Returns the outcome of a delivery whose webhook is disabled; undefined if it should be attempted.
 */
function findEarlyOutcome({
  checkedNowMs,
  disabledAtMs,
}: WebhookTarget): DeliveryOutcome | undefined {
  if (disabledAtMs === null) return undefined
  return checkedNowMs - disabledAtMs > MAX_DISABLED_MS
    ? { kind: 'cancelled', reason: 'The webhook was disabled for 30 days' }
    : { ...postpone(DISABLED_MS, 'The webhook is disabled'), isAlone: true }
}

/**
 * Converts the outcome of an attempt for the outbox. `isStored` says whether the webhook waits now,
 * if its endpoint limits. `waitedMs` is the time since the delivery was first due.
 */
function toDeliveryOutcome(
  outcome: WebhookOutcome,
  { isStored, waitedMs }: { isStored: boolean; waitedMs: number },
): DeliveryOutcome {
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'done' }
    case 'gone':
      return { kind: 'gone', reason: outcome.reason }
    case 'unsent':
      return postpone(BUSY_MS, outcome.reason)
    case 'limited': {
      const { reason, afterMs = LIMITED_MS } = outcome
      // Otherwise an endpoint that always answers 429 would keep its deliveries forever.
      if (waitedMs > MAX_LIMITED_MS) return { kind: 'retry', afterMs, reason }
      return isStored ? { ...postpone(0, reason), isAlone: true } : postpone(afterMs, reason)
    }
    case 'failed': {
      const { reason, afterMs } = outcome
      return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
    }
  }
}

function postpone(afterMs: number, reason: string): Postponed {
  return { kind: 'postponed', afterMs, reason }
}

/**
 * The outcome if the webhook was changed during an attempt that it did not accept. The response of
 * the former endpoint says nothing about the new one.
 */
const CHANGED: Postponed = {
  ...postpone(0, 'The webhook was changed during the attempt'),
  isAlone: true,
}

/** Signs a request and sends it. Returns the completed attempt. */
export async function makeAttempt(
  egress: Egress,
  target: WebhookTarget,
  {
    messageId,
    ...attempt
  }: Pick<CompletedAttempt, 'id' | 'kind' | 'eventId' | 'hasUser' | 'number' | 'request'> & {
    messageId: string
  },
  limits?: { signal: AbortSignal | undefined; begin: (() => boolean) | undefined },
): Promise<CompletedAttempt> {
  const { projectId, id: webhookId, nowMs, preset, generation, signingSecrets } = target
  const { url, body } = attempt.request
  const headers = signMessage({ id: messageId, timestampMs: nowMs, body }, signingSecrets)
  const result = await egress.send({
    url,
    body,
    headers: { ...target.headers, 'Content-Type': CONTENT_TYPE, ...headers },
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    maxBodyMs: MAX_BODY_MS,
    share: target.context.organization.id,
    isAwaited: attempt.kind === 'webhook.test',
    ...limits,
  })
  const outcome = toWebhookOutcome(result, nowMs)
  const startedAt = new Date(nowMs)
  const answer = toAnswer(result)
  return { ...attempt, projectId, webhookId, startedAt, preset, generation, answer, outcome }
}

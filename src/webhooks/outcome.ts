import type { EgressResult } from '../egress/egress.ts'
import { parseRetryAfter } from '../egress/failure.ts'
import type { DeliveryAttempt, DeliveryOutcome, Postponed } from '../outbox/kind.ts'
import type { WebhookTarget } from './target.ts'

/**
 * The outcome of an attempt. `unsent` says nothing about the endpoint: there was no room for the
 * request, the proxy of this server failed, or the request was cancelled. `limited` means that the
 * endpoint works, and that it asks to wait. `afterMs` is the wait that it asks for.
 */
export type WebhookOutcome =
  | { kind: 'delivered' | 'gone' | 'unsent'; reason: string }
  | { kind: 'failed' | 'limited'; reason: string; afterMs: number | undefined }

const GONE = 410
const TOO_MANY_REQUESTS = 429
/** The wait for an earlier delivery, which another process may have in flight. */
const TURN_MS = 250
/** The wait if it could not be stored. */
const LIMITED_MS = 5_000
const BUSY_MS = 5_000
/** A delivery that has waited this long is given up. */
const MAX_WAIT_MS = 3 * 86_400_000
const DISABLED_MS = 3_600_000
const MAX_DISABLED_MS = 30 * 86_400_000

/**
 * Returns the outcome of a delivery whose webhook is disabled or paused; undefined if it should be
 * attempted.
 */
export function findEarlyWebhookOutcome(
  { nowMs, disabledAtMs, isProbe, pausedUntilMs, limit }: WebhookTarget,
  { attempt, waitedMs }: Pick<DeliveryAttempt, 'attempt' | 'waitedMs'>,
): DeliveryOutcome | undefined {
  if (disabledAtMs !== null) {
    return nowMs - disabledAtMs > MAX_DISABLED_MS
      ? { kind: 'cancelled', reason: 'The webhook was disabled for 30 days' }
      : postpone(DISABLED_MS, 'The webhook is disabled', MAX_DISABLED_MS + MAX_WAIT_MS)
  }
  if (pausedUntilMs === null || isProbe) return undefined
  if (limit) {
    const leftMs = pausedUntilMs - nowMs
    // Only an attempt shows whether the endpoint still limits, so no delivery is given up before.
    if (leftMs > 0) return hold(leftMs, 'The endpoint asked to wait', Infinity)
    return limit.hasEarlier ? hold(TURN_MS, 'Earlier events go first', Infinity) : undefined
  }
  // A delivery is attempted at least once before it is given up, even if it waited the whole time.
  if (attempt === 1 && waitedMs > MAX_WAIT_MS) return undefined
  // After a pause one delivery is the probe. The others wait for its outcome.
  return postpone(Math.max(pausedUntilMs - nowMs, BUSY_MS), 'The webhook is paused')
}

/** Decides the outcome by the status alone. The body of a response has no effect. */
export function toWebhookOutcome(result: EgressResult, nowMs: number): WebhookOutcome {
  if ('error' in result) {
    const { error, message } = result
    return error === 'busy' || error === 'cancelled' || error === 'proxy'
      ? { kind: 'unsent', reason: message }
      : { kind: 'failed', reason: message, afterMs: undefined }
  }
  const { status, headers } = result
  if (status >= 200 && status < 300)
    return { kind: 'delivered', reason: `The endpoint answered ${status}` }
  if (status === GONE)
    return { kind: 'gone', reason: `The endpoint answered ${GONE}: it is permanently gone` }
  const afterMs = parseRetryAfter(headers['retry-after'], nowMs)
  if (status === TOO_MANY_REQUESTS)
    return {
      kind: 'limited',
      reason: `The endpoint answered ${status}: it limits requests`,
      afterMs,
    }
  const redirect = status >= 300 && status < 400 ? '. Redirects are not followed' : ''
  return {
    kind: 'failed',
    reason: `The endpoint answered ${status}${redirect}`,
    afterMs,
  }
}

/**
 * Converts the outcome of an attempt for the outbox. `limitedMs` is the time until an endpoint that
 * limits gets the next attempt.
 */
export function toDeliveryOutcome(outcome: WebhookOutcome, limitedMs?: number): DeliveryOutcome {
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'done' }
    case 'gone':
      return { kind: 'gone', reason: outcome.reason }
    case 'unsent':
      return postpone(BUSY_MS, outcome.reason)
    case 'limited':
      return hold(limitedMs ?? outcome.afterMs ?? LIMITED_MS, outcome.reason)
    case 'failed': {
      const { reason, afterMs } = outcome
      return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
    }
  }
}

export function postpone(afterMs: number, reason: string, giveUpAfterMs = MAX_WAIT_MS): Postponed {
  return { kind: 'postponed', afterMs, giveUpAfterMs, reason }
}

/** Postpones all deliveries of an endpoint that limits. They keep their order. */
function hold(afterMs: number, reason: string, giveUpAfterMs = MAX_WAIT_MS): Postponed {
  return { ...postpone(afterMs, reason, giveUpAfterMs), keepsPlace: true }
}

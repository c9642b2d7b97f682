import type { EgressResult } from '../../http/egress/egress.ts'
import { parseRetryAfter } from '../../http/egress/failure.ts'
import type { DeliveryOutcome, Postponed } from '../outbox/kind.ts'
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
/** The wait if it could not be stored. */
const LIMITED_MS = 5_000
const BUSY_MS = 5_000
/** For this long, a 429 costs a delivery no attempt. It is longer than the schedule can take. */
const MAX_LIMITED_MS = 4 * 86_400_000
const DISABLED_MS = 3_600_000
const MAX_DISABLED_MS = 30 * 86_400_000

/**
 * Returns the outcome of a delivery whose webhook is disabled; undefined if it should be attempted.
 */
export function findEarlyWebhookOutcome({
  checkedNowMs,
  disabledAtMs,
}: WebhookTarget): DeliveryOutcome | undefined {
  if (disabledAtMs === null) return undefined
  return checkedNowMs - disabledAtMs > MAX_DISABLED_MS
    ? { kind: 'cancelled', reason: 'The webhook was disabled for 30 days' }
    : { ...postpone(DISABLED_MS, 'The webhook is disabled'), isAlone: true }
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
    return { kind: 'delivered', reason: `The receiver answered ${status}` }
  if (status === GONE)
    return { kind: 'gone', reason: `The receiver answered ${GONE}: it is permanently gone` }
  const afterMs = parseRetryAfter(headers['retry-after'], nowMs)
  if (status === TOO_MANY_REQUESTS)
    return {
      kind: 'limited',
      reason: `The receiver answered ${status}: it limits requests`,
      afterMs,
    }
  const redirect = status >= 300 && status < 400 ? '. Redirects are not followed' : ''
  return {
    kind: 'failed',
    reason: `The receiver answered ${status}${redirect}`,
    afterMs,
  }
}

/**
 * Converts the outcome of an attempt for the outbox. `isStored` says whether the webhook waits now,
 * if its endpoint limits. `waitedMs` is the time since the delivery was first due.
 */
export function toDeliveryOutcome(
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
export const CHANGED: Postponed = {
  ...postpone(0, 'The webhook was changed during the attempt'),
  isAlone: true,
}

import type { EgressResult } from '../egress/egress.ts'
import { parseRetryAfter } from '../egress/failure.ts'
import type { DeliveryOutcome, Postponed } from '../outbox/kind.ts'

/**
 * The outcome of an attempt. `refused` is about our key or message, so the subscription may still
 * work. `unsent` means that there was no room for the request, or that it was cancelled.
 */
export type PushOutcome =
  | { kind: 'accepted' | 'gone' | 'too large' | 'refused' | 'failed' | 'unsent'; reason: string }
  | { kind: 'busy'; reason: string; afterMs: number | undefined }

export const DAY_S = 86_400
const BUSY_MS = 5_000
const GONE = new Set([404, 410])
const TOO_LARGE = 413
const REFUSED = new Set([400, 401, 403])
const TIMEOUT = 408
const TOO_MANY = 429

/** Decides the outcome by the status of the response alone. */
export function toPushOutcome(result: EgressResult, nowMs: number): PushOutcome {
  if ('error' in result) {
    const { error, message } = result
    if (error === 'busy' || error === 'cancelled') return { kind: 'unsent', reason: message }
    return {
      kind: 'busy',
      reason: `The push service could not be reached. ${message}`,
      afterMs: undefined,
    }
  }
  const { status, headers } = result
  const reason = `The push service answered ${status}`
  if (status >= 200 && status < 300) return { kind: 'accepted', reason }
  if (GONE.has(status)) return { kind: 'gone', reason: `${reason}: the subscription is gone` }
  if (status === TOO_LARGE)
    return { kind: 'too large', reason: `${reason}: the message is too large` }
  if (REFUSED.has(status)) {
    return { kind: 'refused', reason: `${reason}: it refused the key or the message` }
  }
  if (status >= 500 || status === TOO_MANY || status === TIMEOUT) {
    return { kind: 'busy', reason, afterMs: parseRetryAfter(headers['retry-after'], nowMs) }
  }
  return { kind: 'failed', reason }
}

/** Converts the outcome of an attempt for the outbox. */
export function toDeliveryOutcome(outcome: PushOutcome): DeliveryOutcome {
  const { reason } = outcome
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'done' }
    case 'busy': {
      const { afterMs } = outcome
      return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
    }
    case 'unsent':
      return postpone(BUSY_MS, reason)
    default:
      return { kind: 'failed', reason }
  }
}

export function postpone(afterMs: number, reason: string): Postponed {
  return { kind: 'postponed', afterMs, giveUpAfterMs: DAY_S * 1000, reason }
}

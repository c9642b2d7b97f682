import type { EgressResult } from '../../http/egress/egress.ts'
import { parseHttpDate, parseRetryAfter } from '../../http/egress/failure.ts'
import type { DeliveryOutcome } from '../outbox/delivery-kind.ts'

/**
 * The outcome of an attempt. `refused` is about our clock, contact, key or message, so the
 * subscription may still work. `unsent` means that there was no room for the request, or that it
 * was cancelled.
 */
export type PushOutcome =
  | { kind: 'accepted' | 'gone' | 'too large' | 'failed' | 'unsent'; reason: string }
  | { kind: 'busy'; reason: string; afterMs: number | undefined }
  | PushRefusal

interface PushRefusal {
  kind: 'refused'
  reason: string
  /** False if the same message would be refused again, whatever is mended on this server. */
  isRetried: boolean
  afterMs: number | undefined
  /** How far the clock of the push service is ahead; undefined if it does not say. */
  aheadMs: number | undefined
}

export const DAY_S = 86_400
const BUSY_MS = 5_000
const GONE = new Set([404, 410])
const TOO_LARGE = 413
const INVALID = 400
const REFUSED = new Set([INVALID, 401, 403])
const TIMEOUT = 408
const TOO_MANY = 429

/** Decides the outcome by the status of the response alone. */
export function toPushOutcome(result: EgressResult, nowMs: number): PushOutcome {
  if ('error' in result) {
    const { error, message } = result
    if (error === 'busy' || error === 'cancelled' || error === 'proxy')
      return { kind: 'unsent', reason: message }
    return {
      kind: 'busy',
      reason: `The push service could not be reached. ${message}`,
      afterMs: undefined,
    }
  }
  const { status, headers } = result
  const reason = `The push service answered ${status}`
  const afterMs = parseRetryAfter(headers['retry-after'], nowMs)
  if (status >= 200 && status < 300) return { kind: 'accepted', reason }
  if (GONE.has(status)) return { kind: 'gone', reason: `${reason}: the subscription is gone` }
  if (status === TOO_LARGE)
    return { kind: 'too large', reason: `${reason}: the message is too large` }
  if (REFUSED.has(status)) {
    const dateMs = parseHttpDate(headers['date'])
    return {
      kind: 'refused',
      reason: `${reason}: it refused the key or the message`,
      isRetried: status !== INVALID,
      afterMs,
      aheadMs: dateMs === undefined ? undefined : dateMs - nowMs,
    }
  }
  if (status >= 500 || status === TOO_MANY || status === TIMEOUT) {
    return { kind: 'busy', reason, afterMs }
  }
  return { kind: 'failed', reason }
}

/** Converts the outcome of an attempt for the outbox. */
export function toDeliveryOutcome(outcome: PushOutcome): DeliveryOutcome {
  const { reason } = outcome
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'done' }
    case 'refused':
      return outcome.isRetried ? retry(outcome) : { kind: 'failed', reason }
    case 'busy':
      return retry(outcome)
    case 'unsent':
      return { kind: 'postponed', afterMs: BUSY_MS, reason }
    default:
      return { kind: 'failed', reason }
  }
}

function retry({ reason, afterMs }: { reason: string; afterMs: number | undefined }) {
  return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) } as const
}

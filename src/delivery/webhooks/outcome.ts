import type { EgressResult } from '../../http/egress/egress.ts'
import { parseRetryAfter } from '../../http/egress/failure.ts'

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

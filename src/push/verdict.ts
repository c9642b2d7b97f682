import type { EgressResult } from '../egress/egress.ts'
import { parseRetryAfter } from '../egress/retry-after.ts'

/**
 * What the answer of a push service means, by its status alone. `refused` is about our key or message: the
 * subscription may be good all the same. `unsent` says nothing about anything.
 */
export type Verdict =
  | { kind: 'accepted' | 'gone' | 'too large' | 'refused' | 'failed' | 'unsent'; reason: string }
  | { kind: 'busy'; reason: string; afterMs: number | undefined }

const GONE = new Set([404, 410])
const TOO_LARGE = 413
const REFUSED = new Set([400, 401, 403])
const TIMEOUT = 408
const TOO_MANY = 429

export function toVerdict(result: EgressResult, nowMs: number): Verdict {
  if ('error' in result) {
    const { error, message } = result
    const reason = `The push service could not be reached. ${message}`
    if (error === 'busy' || error === 'cancelled') return { kind: 'unsent', reason: message }
    return { kind: 'busy', reason, afterMs: undefined }
  }
  const { status, headers } = result
  const reason = `The push service answered ${status}`
  if (status >= 200 && status < 300) return { kind: 'accepted', reason }
  if (GONE.has(status)) return { kind: 'gone', reason: `${reason}: the subscription is gone` }
  if (status === TOO_LARGE) return { kind: 'too large', reason: `${reason}: too large` }
  if (REFUSED.has(status)) {
    return { kind: 'refused', reason: `${reason}: it refuses our key or message` }
  }
  if (status >= 500 || status === TOO_MANY || status === TIMEOUT) {
    return { kind: 'busy', reason, afterMs: parseRetryAfter(headers['retry-after'], nowMs) }
  }
  return { kind: 'failed', reason }
}

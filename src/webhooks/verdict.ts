import type { EgressResult } from '../egress/egress.ts'
import { parseRetryAfter } from '../egress/retry-after.ts'

/** What an attempt came to. `unsent` says nothing about the endpoint. */
export type Verdict =
  | { kind: 'delivered'; reason: string }
  | { kind: 'failed'; reason: string; afterMs: number | undefined }
  | { kind: 'gone'; reason: string }
  | { kind: 'unsent'; reason: string }

const GONE = 410

/** The verdict stands with the status: what the body says, or whether it ends, changes nothing. */
export function toVerdict(result: EgressResult, nowMs: number): Verdict {
  if ('error' in result) {
    const { error, message } = result
    return error === 'busy' || error === 'cancelled'
      ? { kind: 'unsent', reason: message }
      : { kind: 'failed', reason: message, afterMs: undefined }
  }
  const { status, headers } = result
  if (status >= 200 && status < 300) return { kind: 'delivered', reason: `It answered ${status}` }
  if (status === GONE) return { kind: 'gone', reason: `It answered ${GONE}: it is gone for good` }
  const redirect = status >= 300 && status < 400 ? ', and redirects are not followed' : ''
  return {
    kind: 'failed',
    reason: `It answered ${status}${redirect}`,
    afterMs: parseRetryAfter(headers['retry-after'], nowMs),
  }
}

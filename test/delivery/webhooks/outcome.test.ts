import { describe, expect, test } from 'bun:test'
import type { EgressResponse, EgressResult } from '../../../src/http/egress/egress.ts'
import { parseRetryAfter } from '../../../src/http/egress/failure.ts'
import {
  toBreakerState,
  toBreakerAfterFailure,
  toBreakerAfterLimit,
  type CircuitBreaker,
} from '../../../src/delivery/webhooks/circuit-breaker.ts'
import { signMessage } from '../../../src/delivery/webhooks/signing.ts'
import { toWebhookOutcome } from '../../../src/delivery/webhooks/outcome.ts'
import { findSignatureProblem } from '../../../src/delivery/webhooks/signing.ts'
import { STANDARD_WEBHOOKS } from '../../support/vectors.ts'

const DAY_MS = 86_400_000
const CLOSED_BREAKER: CircuitBreaker = {
  failures: 0,
  failingSinceMs: null,
  pauses: 0,
  pausedUntilMs: null,
}

test.each([
  ['120', 120_000],
  ['1.5', 1_500],
  ['0', 0],
  [' 7 ', 7_000],
  ['86401', DAY_MS],
  ['999999999999', DAY_MS],
  ['Wed, 21 Oct 2026 07:28:00 GMT', 60_000],
  ['Wed, 21 Oct 2026 07:26:00 GMT', 0],
  ['Thu, 21 Oct 2027 07:28:00 GMT', DAY_MS],
  ['', undefined],
  ['soon', undefined],
  ['-5', undefined],
  ['1e3', undefined],
  ['NaN', undefined],
  ['2026-10-21', undefined],
  ['1'.repeat(400), undefined],
  [undefined, undefined],
])('delivery: Retry-After %p is %p', (text, ms) => {
  expect(parseRetryAfter(text, Date.parse('2026-10-21T07:27:00Z'))).toBe(ms)
})

describe('delivery: the outcome of an attempt', () => {
  const answer = (status: number, headers = {}): EgressResponse => ({
    status,
    headers,
    body: Buffer.from(''),
    latencyMs: 1,
  })

  test.each([
    ['delivered', [200, 204, 299]],
    ['failed', [0, 199, 301, 304, 400, 401, 404, 500, 503]],
    ['gone', [410]],
    ['limited', [429]],
  ])('%s with the status %p', (kind, statuses) => {
    const kinds = statuses.map(status => toWebhookOutcome(answer(status), 0).kind)
    expect(kinds).toEqual(statuses.map(() => kind as never))
  })

  test('without a response is failed, or unsent if it says nothing about the endpoint', () => {
    const failed = ['refused', 'dns', 'connect', 'tls', 'timeout', 'reset', 'protocol']
    for (const error of [...failed, 'busy', 'proxy', 'cancelled']) {
      const kind = failed.includes(error) ? 'failed' : 'unsent'
      const result = { error, message: 'm', latencyMs: 1 } as EgressResult
      expect([error, toWebhookOutcome(result, 0).kind]).toEqual([error, kind])
    }
  })
})

describe('delivery: the breaker', () => {
  /** Returns the breaker after `times` failures, a second apart. */
  const failed = (times: number, from: CircuitBreaker = CLOSED_BREAKER) => {
    let breaker = from
    for (let n = 0; n < times; n++) breaker = toBreakerAfterFailure(breaker, from.pauses, n * 1000)
    return breaker
  }

  test('is not paused for longer by attempts from before the pause', () => {
    expect(failed(15)).toMatchObject({ failures: 15, pauses: 1, pausedUntilMs: 39_000 })
  })

  test('doubles the pause with each failing probe, up to 10 minutes', () => {
    let breaker = failed(10)
    const pauses: number[] = []
    for (let n = 0; n < 7; n++) {
      const nowMs = breaker.pausedUntilMs ?? 0
      breaker = toBreakerAfterFailure(breaker, breaker.pauses, nowMs)
      pauses.push(((breaker.pausedUntilMs ?? 0) - nowMs) / 1000)
    }
    expect(pauses).toEqual([60, 120, 240, 480, 600, 600, 600])
  })

  test('a wait that the endpoint asks for is no failure, and never becomes shorter', () => {
    const limit = (from: CircuitBreaker, afterMs: number | undefined, nowMs = 0) =>
      toBreakerAfterLimit(from, afterMs, nowMs)
    expect(limit(failed(9), 60_000)).toEqual({ ...failed(9), pausedUntilMs: 60_000 })
    expect(limit(limit(CLOSED_BREAKER, 60_000), 2_000).pausedUntilMs).toBe(60_000)
    expect(limit(CLOSED_BREAKER, 0).pausedUntilMs).toBe(1_000)
    expect(limit(CLOSED_BREAKER, DAY_MS)).toMatchObject({ failures: 0, failingSinceMs: null })
    // Without Retry-After each wait is twice as long; concurrent answers count once.
    let breaker = CLOSED_BREAKER
    const waits: number[] = []
    for (let n = 0; n < 9; n++) {
      const nowMs = breaker.pausedUntilMs ?? 0
      breaker = limit(limit(breaker, undefined, nowMs), undefined, nowMs)
      waits.push(((breaker.pausedUntilMs ?? 0) - nowMs) / 1000)
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600])
    // A wait is no pause for failures: the tenth failure begins one.
    expect(toBreakerAfterFailure(limit(failed(9), 1_000), 0, 9_000)).toEqual(failed(10))
    expect(toBreakerState(limit(failed(9), 60_000), 59_999)).toBe('limited')
    expect(toBreakerState(limit(failed(9), 60_000), 60_000)).toBe('closed')
  })

  test('is shown as closed, paused or probing', () => {
    expect(toBreakerState(failed(9), 0)).toBe('closed')
    expect(toBreakerState(failed(10), 38_999)).toBe('paused')
    expect(toBreakerState(failed(10), 39_000)).toBe('probing')
  })
})

test.each(STANDARD_WEBHOOKS)(
  'delivery: the official vector $id matches byte for byte',
  ({ secret, id, timestamp, body, signature }) => {
    const message = { id, timestampMs: timestamp * 1000 + 999, body }
    expect(signMessage(message, [secret])).toEqual({
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signature,
    })
    const signed = { body, id, timestamp: String(timestamp), signature }
    const nowMs = timestamp * 1000
    expect(findSignatureProblem(signed, secret, nowMs)).toBeUndefined()
    expect(
      findSignatureProblem({ ...signed, signature: `v2,x v1,x ${signature}` }, secret, nowMs),
    ).toBeUndefined()
    for (const [change, part] of [
      [{ body: `${body}\n` }, 'No signature'],
      [{ id: 'msg_2' }, 'No signature'],
      [{ timestamp: String(timestamp + 1) }, 'No signature'],
      [{ signature: 'v1,' }, 'has no signature'],
      [{ signature: signature.slice(0, 11) }, 'has no signature'],
      [{ signature: signature.replace('v1', 'v2') }, 'has no signature'],
      [{ timestamp: 'now' }, 'webhook-timestamp'],
      [{ timestamp: '-1' }, 'webhook-timestamp'],
    ] as const) {
      expect(findSignatureProblem({ ...signed, ...change }, secret, nowMs)).toContain(part)
    }
    for (const none of [
      '',
      'whsec_',
      'whsec_%',
      secret.slice(6),
      `${secret}=`,
      secret.slice(0, -1),
    ]) {
      expect(findSignatureProblem(signed, none, nowMs)).toContain('secret')
    }
    expect(findSignatureProblem(signed, secret, nowMs + 301_000)).toContain('301 s old')
    expect(findSignatureProblem(signed, secret, nowMs - 301_000)).toContain('301 s in the future')
    expect(findSignatureProblem(signed, secret, nowMs + 300_000)).toBeUndefined()
  },
)

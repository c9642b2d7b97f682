import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createFairQueue } from '../../../src/delivery/outbox/fair-queue.ts'
import { checkLeases, type DeliveryOutcome } from '../../../src/delivery/outbox/delivery-kind.ts'
import { toSettlement } from '../../../src/delivery/outbox/settlement.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

const SCHEDULE = [0, 5_000, 300_000]
const settle = (
  outcome: DeliveryOutcome,
  more: { attempt?: number; random?: number; claimCount?: number } = {},
) =>
  toSettlement({
    outcome,
    hasBegun: true,
    attempt: more.attempt ?? 1,
    claimCount: more.claimCount ?? 1,
    schedule: SCHEDULE,
    latencyMs: 12.4,
    random: more.random ?? 0.5,
  })

test('delivery: the outcome of an attempt decides the next state of the delivery', () => {
  const reason = 'http_500'
  expect(settle({ kind: 'done' })).toMatchObject({ state: 'delivered', attempts: 1, latencyMs: 12 })
  expect(settle({ kind: 'gone', reason })).toMatchObject({ state: 'dead', attempts: 1, reason })
  expect(settle({ kind: 'failed', reason })).toMatchObject({ state: 'failed', attempts: 1 })
  expect(settle({ kind: 'withheld', reason })).toMatchObject({ state: 'withheld', attempts: 0 })
  expect(settle({ kind: 'withheld', reason: 'Muted' }, { claimCount: 2 }).reason).toBe(
    'Muted. It may have arrived: the server ended during an attempt',
  )
  expect(settle({ kind: 'cancelled', reason })).toMatchObject({ state: 'cancelled', attempts: 0 })
  expect(settle({ kind: 'postponed', afterMs: 999, reason })).toMatchObject({
    state: null,
    attempts: 0,
    delayMs: 999,
  })
  expect(settle({ kind: 'retry', reason })).toMatchObject({ state: null, delayMs: 5_000 })
  expect(settle({ kind: 'retry', reason }, { attempt: 2 })).toMatchObject({ delayMs: 300_000 })
  expect(settle({ kind: 'retry', reason }, { attempt: 3 })).toMatchObject({ state: 'dead', reason })
})

test('delivery: retries follow the schedule within 20 %, and Retry-After up to a day', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.oneof(fc.constant(undefined), fc.double(), fc.integer()),
      (random, afterMs) => {
        const { delayMs } = settle(
          { kind: 'retry', reason: '', ...(afterMs !== undefined && { afterMs }) },
          { random },
        )
        const asked = Math.min(86_400_000, Math.max(0, afterMs || 0))
        expect(delayMs).toBeGreaterThanOrEqual(Math.max(4_000, Math.floor(asked)))
        expect(delayMs).toBeLessThanOrEqual(Math.max(6_000, Math.ceil(asked)))
      },
    ),
  )
})

test('delivery: a reason is valid text for Postgres, of limited length', () => {
  const { reason } = settle({ kind: 'gone', reason: `\u0000\ud800${'💥'.repeat(600)}` })
  expect([...(reason ?? '')]).toHaveLength(500)
  expect(reason).toStartWith('\ufffd\ufffd💥')
})

test('delivery: a lease must outlast the timeout by more than 5 s, else the start fails', () => {
  const kind = (leaseMs: number) => createTestKind({ timeoutMs: 15_000, leaseMs })
  expect(() => checkLeases([kind(20_001)])).not.toThrow()
  expect(() => checkLeases([kind(20_000)])).toThrow('The lease of a webhook (20000 ms)')
})

const due = (...targetIds: string[]) =>
  targetIds.map(targetId => ({
    ...{ targetId, dueInMs: -1, dueAt: 'then', floor: 'before', isSingle: false },
  }))
const names = (requests: { targetId: string }[]) => requests.map(({ targetId }) => targetId)

test('delivery: targets take turns, new ones first, each up to its limit', () => {
  const queue = createFairQueue(2)
  queue.update([...due('a', 'b', 'c'), { ...due('e')[0]!, dueInMs: 5 }], 0)
  const first = queue.next(2, 0)
  expect(first).toEqual([
    { targetId: 'a', room: 2, dueAt: 'then' },
    { targetId: 'b', room: 2, dueAt: 'then' },
  ])
  queue.claimed(first, { counts: new Map([['a', 2]]), isAll: true })
  // b has nothing more, a had its turn, d is new.
  queue.update(due('a', 'c', 'd'), 0)
  expect(names(queue.next(9, 0))).toEqual(['d', 'c', 'a'])
  queue.start('c')
  queue.start('c')
  queue.hang('d')
  queue.pause('a', 100, 0)
  expect(queue.next(9, 99)).toEqual([])
  queue.end('c')
  queue.unhang('d')
  expect(queue.next(9, 100)).toEqual([
    { targetId: 'd', room: 2, dueAt: 'then' },
    { targetId: 'c', room: 1, dueAt: 'then' },
    { targetId: 'a', room: 2, dueAt: 'then' },
  ])
})

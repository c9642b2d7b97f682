import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createBell } from '../../src/outbox/bell.ts'
import { toRuns } from '../../src/outbox/cursors.ts'
import { checkKinds, type Outcome } from '../../src/outbox/kind.ts'
import { parsePlace, toPlaceCursor, UUID_PART } from '../../src/outbox/place.ts'
import { toSettlement } from '../../src/outbox/settlement.ts'
import { createTurns } from '../../src/outbox/turns.ts'
import { createTestKind } from '../support/delivery-kind.ts'

const SCHEDULE = [0, 5_000, 300_000]
const settle = (
  outcome: Outcome,
  more: { attempt?: number; random?: number; waitedMs?: number } = {},
) =>
  toSettlement({
    outcome,
    attempt: more.attempt ?? 1,
    schedule: SCHEDULE,
    latencyMs: 12.4,
    waitedMs: more.waitedMs ?? 0,
    random: more.random ?? 0.5,
  })

test('delivery: what comes of an attempt decides what becomes of the job', () => {
  const reason = 'http_500'
  expect(settle({ kind: 'done' })).toMatchObject({ state: 'delivered', attempts: 1, latencyMs: 12 })
  expect(settle({ kind: 'gone', reason })).toMatchObject({ state: 'dead', attempts: 1, reason })
  expect(settle({ kind: 'failed', reason })).toMatchObject({ state: 'failed', attempts: 1 })
  expect(settle({ kind: 'withheld', reason })).toMatchObject({ state: 'withheld', attempts: 0 })
  expect(settle({ kind: 'cancelled', reason })).toMatchObject({ state: 'cancelled', attempts: 0 })
  expect(settle({ kind: 'postponed', afterMs: 999, withinMs: 5_000, reason })).toMatchObject({
    state: null,
    attempts: 0,
    delayMs: 999,
  })
  expect(
    settle({ kind: 'postponed', afterMs: 999, withinMs: 5_000, reason }, { waitedMs: 5_001 }),
  ).toMatchObject({ state: 'dead', attempts: 0, delayMs: null })
  expect(settle({ kind: 'retry', reason })).toMatchObject({ state: null, delayMs: 5_000 })
  expect(settle({ kind: 'retry', reason }, { attempt: 2 })).toMatchObject({ delayMs: 300_000 })
  expect(settle({ kind: 'retry', reason }, { attempt: 3 })).toMatchObject({ state: 'dead', reason })
})

test('delivery: retries keep to the schedule give or take 20 %, and to Retry-After up to a day', () => {
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

test('delivery: a reason is text that Postgres takes, of a bounded length', () => {
  const { reason } = settle({ kind: 'gone', reason: `\u0000\ud800${'💥'.repeat(600)}` })
  expect([...(reason ?? '')]).toHaveLength(500)
  expect(reason).toStartWith('\ufffd\ufffd💥')
})

test('delivery: a lease outlasts the time-out by more than 5 s, or nothing starts', () => {
  const kind = (leaseMs: number) => createTestKind({ timeoutMs: 15_000, leaseMs })
  expect(() => checkKinds([kind(20_001)])).not.toThrow()
  expect(() => checkKinds([kind(20_000)])).toThrow('The lease of a webhook (20000 ms)')
  expect(() => checkKinds([createTestKind({ schedule: [5] })])).toThrow('due at once')
  expect(() => checkKinds([createTestKind(), createTestKind()])).toThrow('one name')
})

test('delivery: of many logs each gets its share of a transaction, however long the others are', () => {
  const runs = [
    { projectId: 'long', fromSeq: 10n, toSeq: 1_000_000n },
    { projectId: 'short', fromSeq: 0n, toSeq: 3n },
    { projectId: 'middle', fromSeq: 5n, toSeq: 300n },
  ]
  expect(toRuns(runs, 500)).toEqual({
    projectIds: '{"short","middle","long"}',
    fromSeqs: '{"0","5","10"}',
    toSeqs: '{"3","254","258"}',
    events: 500,
  })
  expect(toRuns(runs, 1)).toMatchObject({ projectIds: '{"short"}', toSeqs: '{"1"}', events: 1 })
  expect(toRuns(runs.slice(1), 500).events).toBe(298)
  expect(toRuns([], 500).events).toBe(0)
})

const due = (...targetIds: string[]) =>
  targetIds.map(targetId => ({ targetId, dueInMs: -1, dueAt: 'then', low: 'before' }))
const names = (wishes: { targetId: string }[]) => wishes.map(({ targetId }) => targetId)

test('delivery: targets take turns, new ones first, and nobody gets more than its share', () => {
  const turns = createTurns(2)
  turns.see(due('a', 'b', 'c'), 0)
  const first = turns.next(2, 0)
  expect(first).toEqual([
    { targetId: 'a', room: 2, dueAt: 'then' },
    { targetId: 'b', room: 2, dueAt: 'then' },
  ])
  turns.got(first, { counts: new Map([['a', 2]]), isAll: true })
  // b had nothing more, a had its turn, d is new.
  turns.see(due('a', 'c', 'd'), 0)
  expect(names(turns.next(9, 0))).toEqual(['d', 'c', 'a'])
  turns.start('c')
  turns.start('c')
  turns.hang('d')
  turns.pause('a', 100)
  expect(turns.next(9, 99)).toEqual([])
  turns.end('c')
  turns.unhang('d')
  expect(turns.next(9, 100)).toEqual([
    { targetId: 'd', room: 2, dueAt: 'then' },
    { targetId: 'c', room: 1, dueAt: 'then' },
    { targetId: 'a', room: 2, dueAt: 'then' },
  ])
})

test('delivery: what is due later is nobody’s turn', () => {
  const turns = createTurns(2)
  turns.see([{ targetId: 'a', dueInMs: 5, dueAt: 'then', low: 'before' }], 0)
  expect(turns.hasDue).toBe(false)
  expect(turns.next(9, 0)).toEqual([])
})

test('delivery: a cursor of a list is one of ours, or refused', () => {
  const id = crypto.randomUUID()
  expect(parsePlace(toPlaceCursor([id]), [UUID_PART])).toEqual([id])
  expect(parsePlace(undefined, [UUID_PART])).toBeUndefined()
  for (const cursor of [
    '',
    'x',
    toPlaceCursor([]),
    toPlaceCursor([id, id]),
    `${toPlaceCursor([id])}=`,
  ]) {
    expect(() => parsePlace(cursor, [UUID_PART])).toThrow('Validation error')
  }
})

test('delivery: a loop sleeps until it is rung for, or until the first time that it asked for', async () => {
  const bell = createBell()
  bell.ring()
  await bell.sleep()
  bell.ringIn(10_000)
  bell.ringIn(1)
  await bell.sleep()
  const asleep = bell.sleep()
  bell.ring()
  await asleep
})

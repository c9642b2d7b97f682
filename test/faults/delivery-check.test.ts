import { expect, test } from 'bun:test'
import { newId } from '../../src/base/ids.ts'
import { checkRepeats, type Fault } from './delivery-check.ts'
import type { Receipt } from './webhook-receiver.ts'

/** Returns the problems of an event that was created now, and arrives at these times from now. */
function check(firstMs: number, laterMs: number, toFaults: (nowMs: number) => Fault[]): string[] {
  const { uuid } = newId('evt')
  const nowMs = performance.now()
  const receipt = { id: 'msg', eventId: uuid, targetId: 'target', isAccepted: true }
  const receipts: Receipt[] = [firstMs, laterMs].map(ms => ({ ...receipt, atMs: nowMs + ms }))
  const faults = toFaults(nowMs)
  const times = { timeoutMs: 5_000, leaseMs: 10_000, slackMs: 10_000 }
  return checkRepeats(receipts, { faults, ...times }).map(text => text.split(' was ')[1] ?? '')
}

const toFault =
  (kind: string, isCrash: boolean) => (startMs: number, endMs: number) => (nowMs: number) => [
    { kind, isCrash, startMs: nowMs + startMs, endMs: nowMs + endMs },
  ]
const crash = toFault('all of Postgres', true)
const kill = toFault('kill worker', false)

test('a repeat after the lease of a server that was killed is explained', () => {
  expect(check(100, 10_200, kill(150, 160))).toEqual([])
})

test('a repeat at once is explained by a crash that undid the dispatch, before or after its attempt', () => {
  expect(check(100, 1_500, crash(150, 1_000))).toEqual([])
  expect(check(1_200, 1_500, crash(150, 1_000))).toEqual([])
  // The attempt took nearly as long as it may.
  expect(check(5_500, 5_800, crash(150, 1_000))).toEqual([])
})

test('a crash explains no repeat at once of an event that was created after it, or long before', () => {
  const found = (faults: string) => [
    `repeated after 400 ms without an explanation. Faults: ${faults}`,
  ]
  expect(check(100, 500, crash(-1_000, -500))).toEqual(
    found('all of Postgres from -1100 to -600 ms'),
  )
  expect(check(8_000, 8_400, crash(50, 1_000))).toEqual(
    found('all of Postgres from -7950 to -7000 ms'),
  )
  expect(check(100, 500, kill(150, 160))).toEqual(found('kill worker from 50 to 60 ms'))
  expect(check(100, 500, () => [])).toEqual(found('none'))
})

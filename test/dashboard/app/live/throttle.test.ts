import { describe, expect, test } from 'bun:test'
import { toBackoffMs, SYSTEM_CLOCK } from '../../../../src/dashboard/app/live/clock.ts'
import { createAnnouncer, createThrottle } from '../../../../src/dashboard/app/live/throttle.ts'
import { createFakeClock } from '../../../support/fakes/clock.ts'

test('the delay before reconnecting grows, and is at least as long as the server asks', () => {
  expect([1, 2, 60].map(attempt => toBackoffMs(attempt, () => 0))).toEqual([250, 250, 250])
  expect([1, 2, 6, 60].map(attempt => toBackoffMs(attempt, () => 1))).toEqual([
    500, 1_000, 15_000, 15_000,
  ])
  expect(toBackoffMs(1, () => 1, 30)).toBe(30_000)
  expect(toBackoffMs(6, () => 1, 1)).toBe(15_000)
})

describe('a batch', () => {
  function count() {
    const clock = createFakeClock()
    const runs: number[] = []
    const batch = createThrottle(clock, 300, () => runs.push(clock.now() - 1_000_000))
    return { clock, runs, batch }
  }

  test('runs at once after a quiet time, and then at most once per interval', () => {
    const { clock, runs, batch } = count()
    for (let ms = 0; ms < 1_000; ms += 10) {
      batch.trigger()
      clock.pass(10)
    }
    clock.pass(1_000)
    expect(runs).toEqual([0, 300, 600, 900, 1_200])
    batch.trigger()
    expect(runs.at(-1)).toBe(2_000)
  })

  test('a flush runs what waits, once, and nothing else', () => {
    const { clock, runs, batch } = count()
    batch.flush()
    expect(runs).toEqual([])
    batch.trigger()
    batch.trigger()
    clock.pass(100)
    batch.flush()
    batch.flush()
    clock.pass(1_000)
    expect(runs).toEqual([0, 100])
    expect(clock.waiting).toBe(0)
  })

  test('has no timer while idle or after a stop', () => {
    const { clock, runs, batch } = count()
    expect(clock.waiting).toBe(0)
    batch.trigger()
    batch.trigger()
    expect(clock.waiting).toBe(1)
    batch.stop()
    clock.pass(1_000)
    expect([clock.waiting, runs]).toEqual([0, [0]])
  })

  test('is not delayed by a clock that was set back', () => {
    const { clock, runs, batch } = count()
    batch.trigger()
    clock.pass(-3_600_000)
    batch.trigger()
    clock.pass(300)
    expect(runs).toHaveLength(2)
  })
})

test('a wait that is longer than browsers can count does not end at once', async () => {
  const ended: string[] = []
  const cancel = SYSTEM_CLOCK.after(2 ** 31, () => ended.push('long'))
  await new Promise<void>(resolve => void SYSTEM_CLOCK.after(20, resolve))
  cancel()
  expect(ended).toEqual([])
})

test('the status line announces at once, and then everything new every 10 s', () => {
  const clock = createFakeClock()
  const said: string[] = []
  const announcer = createAnnouncer(clock, sentence => said.push(sentence))
  announcer.add([{ title: 'First' }])
  for (let n = 0; n < 5; n++) {
    announcer.add([{ title: `Number ${n}`, level: 'low' }, ...Array(9).fill({ title: 'Older' })])
    clock.pass(1_000)
  }
  clock.pass(20_000)
  expect(said).toEqual(['1 new event: First', '50 new events. Newest: Number 4'])
})

test('the status line names the newest of the most urgent events, and its level', () => {
  const clock = createFakeClock()
  const said: string[] = []
  const announcer = createAnnouncer(clock, sentence => said.push(sentence))
  const urgent = [
    { title: 'Disk full', level: 'critical' },
    { title: 'Disk nearly full', level: 'critical' },
    { title: 'Slow', level: 'high' },
  ] as const
  for (const events of [[urgent[0]], [urgent[2]], urgent, [urgent[2]], [{ title: 'Up' }]]) {
    announcer.add(events)
    clock.pass(5_000)
  }
  clock.pass(20_000)
  expect(said).toEqual([
    '1 new event. Critical: Disk full',
    '1 new event. High: Slow',
    '4 new events. Critical: Disk full',
    '1 new event: Up',
  ])
})

test('the status line names states, and no level of a thread that ended well', () => {
  const clock = createFakeClock()
  const said: string[] = []
  const announcer = createAnnouncer(clock, sentence => said.push(sentence))
  const title = 'Disk'
  for (const state of ['firing', 'resolved', 'failed'] as const) {
    announcer.add([{ title, state, level: 'critical' }, { title: 'Up' }])
    clock.pass(10_000)
  }
  expect(said).toEqual([
    '2 new events. Critical: Disk, firing',
    '2 new events. Newest: Disk, resolved',
    '2 new events. Critical: Disk, failed',
  ])
})

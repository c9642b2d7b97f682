import { expect, test } from 'bun:test'
import { startLoop } from '../../src/base/loop.ts'
import { until } from '../support/until.ts'

const LONG_MS = 10 * 60_000

test('a slow round delays the next one, and stop waits for it', async () => {
  const release = Promise.withResolvers<void>()
  let begun = 0
  let ended = 0
  const loop = startLoop({
    everyMs: 0,
    runsAtOnce: true,
    async round() {
      begun++
      await release.promise
      ended++
    },
    onFailure() {},
  })
  expect(begun).toBe(1)
  let isStopped = false
  const stopped = loop.stop().then(() => (isStopped = true))
  await new Promise(resolve => setImmediate(resolve))
  expect({ begun, ended, isStopped }).toEqual({ begun: 1, ended: 0, isStopped: false })
  release.resolve()
  await stopped
  expect({ begun, ended }).toEqual({ begun: 1, ended: 1 })
})

test('a failed round is reported, and the next one tries again', async () => {
  const reasons: string[] = []
  let rounds = 0
  const loop = startLoop({
    everyMs: 0,
    async round() {
      if (++rounds === 1) throw new Error('the database is gone')
    },
    onFailure: reason => reasons.push(reason),
  })
  await until(() => rounds >= 2)
  await loop.stop()
  expect(reasons).toEqual(['the database is gone'])
})

test('a loop that waits for its first round stops without one', async () => {
  const done: string[] = []
  const loop = startLoop({
    everyMs: LONG_MS,
    round: async () => void done.push('round'),
    last: async () => void done.push('last'),
    onFailure() {},
  })
  await loop.stop()
  await loop.stop()
  expect(done).toEqual(['last'])
})

test('stop aborts the signal of the round with its reason, and last begins after the round', async () => {
  const done: unknown[] = []
  const loop = startLoop({
    everyMs: LONG_MS,
    runsAtOnce: true,
    round: signal =>
      new Promise(resolve =>
        signal.addEventListener('abort', () => {
          done.push(signal.reason)
          setImmediate(() => resolve(void done.push('round')))
        }),
      ),
    last: async () => void done.push('last'),
    onFailure() {},
  })
  await loop.stop('stopping')
  expect(done).toEqual(['stopping', 'round', 'last'])
})

test('a round can choose the pause after it', async () => {
  let rounds = 0
  const loop = startLoop({
    everyMs: LONG_MS,
    runsAtOnce: true,
    round: async () => (++rounds < 3 ? 0 : undefined),
    onFailure() {},
  })
  await until(() => rounds === 3)
  await loop.stop()
  expect(rounds).toBe(3)
})

test('a last round that fails is reported, and the stop succeeds', async () => {
  const reasons: string[] = []
  const loop = startLoop({
    everyMs: LONG_MS,
    round: async () => {},
    last: () => Promise.reject(new Error('no connection')),
    onFailure: reason => reasons.push(reason),
  })
  await loop.stop()
  expect(reasons).toEqual(['no connection'])
})

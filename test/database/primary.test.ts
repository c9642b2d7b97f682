import { expect, test } from 'bun:test'
import { choosePrimary, findBest, type State } from '../../src/database/primary.ts'

const state = (name: string, timeline: number, more: Partial<State> = {}): State => ({
  host: { host: name, port: 5432 },
  isPrimary: true,
  isWritable: true,
  timeline,
  ...more,
})
const choose = (states: readonly State[], latestTimeline = 0) =>
  choosePrimary(states, latestTimeline)?.host.host

test('scale §1 the primary with the latest timeline is chosen, then one that takes writes', () => {
  const standby = state('b', 0, { isPrimary: false, isWritable: false })
  expect(choose([state('a', 1), standby])).toBe('a')
  expect(choose([state('a', 1), state('b', 2)])).toBe('b')
  expect(choose([state('a', 1), state('b', 2, { isWritable: false })])).toBe('b')
  expect(choose([state('a', 2, { isWritable: false }), state('b', 2)])).toBe('b')
  expect(choose([standby])).toBeUndefined()
})

test('scale §1 a former primary is not chosen while the promoted one is away', () => {
  expect(choose([state('a', 1)], 2)).toBeUndefined()
  expect(choose([state('a', 1), state('c', 3)], 2)).toBe('c')
})

test('scale §1 after pg_upgrade, which begins with timeline 1 again, the primary is chosen', async () => {
  const standby = state('b', 0, { isPrimary: false, isWritable: false })
  const find = (...probes: Promise<State>[]) => findBest(probes, 5).then(({ host }) => host.host)
  expect(await find(Promise.resolve(state('a', 1)), Promise.resolve(standby))).toBe('a')
  const away = Promise.reject(new Error('b does not respond'))
  await expect(find(Promise.resolve(state('a', 1)), away)).rejects.toThrow('is a former primary')
})

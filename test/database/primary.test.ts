import { expect, test } from 'bun:test'
import { choosePrimary, type State } from '../../src/database/primary.ts'

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

import { expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import { adjust } from './machine.ts'
import { measureStart, watchSpeed } from './speed.ts'

test('load leaves a batch for each core, and memory leaves one', () => {
  const limits = { max: 12, step: 3 }
  const settle = (load: number, memory: number, from: number) => {
    let capacity = from
    for (let second = 0; second < 100; second++) {
      capacity = adjust(capacity, { load, memory }, limits)
    }
    return Math.round(capacity)
  }
  expect(settle(1, 0, 3)).toBe(12)
  expect(settle(3, 0, 12)).toBe(6)
  expect(settle(3, 0.5, 12)).toBe(3)
  // Load gives back nothing that memory took.
  expect(settle(3, 0, 4)).toBe(4)
})

test('the factor rises at once, and falls after three quick measurements', async () => {
  const shares = [1, 4]
  const told: number[] = []
  const takeShare = async () => shares.shift() ?? 1
  const work = async () => {}
  const speed = await watchSpeed(work, factor => told.push(factor), { everyMs: 10, takeShare })
  await until(() => told.length >= 5)
  await speed.stop()
  expect(told.slice(0, 5)).toEqual([1, 4, 4, 4, 1])
  expect(await measureStart()).toBeGreaterThanOrEqual(1)
})

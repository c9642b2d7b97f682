import { expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import { adjust, countProcessorTime, watchRoom } from './machine.ts'
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

test('the room for batches follows the pressure while a lane runs', async () => {
  let load = 9
  const room = watchRoom(12, 3, () => ({ load, memory: 0 }))
  expect(room.capacity()).toBe(12)
  await until(() => room.capacity() < 12)
  load = 0
  await until(() => room.capacity() === 12)
  room.stop()
})

test('the factor rises while a measurement lasts, and falls after three quick ones', async () => {
  let held: Promise<void> = Promise.resolve()
  const told: number[] = []
  const speed = await watchSpeed(
    () => held,
    factor => told.push(factor),
    { everyMs: 10 },
  )
  const before = speed.factor()
  expect(told).toEqual([before])
  const { promise, resolve } = Promise.withResolvers<void>()
  held = promise
  await until(() => speed.factor() === 10)
  resolve()
  held = Promise.resolve()
  await until(() => told.length >= 5 && speed.factor() < 10)
  await speed.stop()
  expect(await measureStart()).toBeGreaterThanOrEqual(1)
})

test('processor time counts what this process waited for', async () => {
  const read = countProcessorTime()
  Bun.spawnSync([process.execPath, '-e', 'for (const end = Date.now() + 300; Date.now() < end; );'])
  const time = read()
  if (time === undefined) return
  expect(time.ownS).toBeGreaterThan(0)
  expect(time.busy).toBeWithin(0, 1.01)
})

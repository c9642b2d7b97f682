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

test('the factor rises while a measurement lasts', async () => {
  let held: Promise<void> = Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const speed = await watchSpeed(
    () => held,
    () => {},
    { everyMs: 10 },
  )
  held = promise
  await until(() => speed.factor() === 10)
  resolve()
  await speed.stop()
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

test('processor time counts what this process waited for', async () => {
  const read = countProcessorTime()
  Bun.spawnSync([process.execPath, '-e', 'for (const end = Date.now() + 300; Date.now() < end; );'])
  const time = read()
  if (time === undefined) return
  expect(time.ownS).toBeGreaterThan(0)
  expect(time.busy).toBeWithin(0, 1.01)
})

import { expect, test } from 'bun:test'
import type { Pool } from '../../../src/database/pool.ts'
import { createFairQueue } from '../../../src/delivery/outbox/fair-queue.ts'
import { createInFlightDeliveries } from '../../../src/delivery/outbox/in-flight.ts'
import { lostLeases } from '../../../src/base/metrics.ts'
import { until } from '../../support/until.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

const newDelivery = () => ({
  ...{ id: crypto.randomUUID(), token: crypto.randomUUID(), projectId: crypto.randomUUID() },
  ...{ eventId: crypto.randomUUID(), targetId: crypto.randomUUID(), claimCount: 1, attempts: 0 },
  ...{ ageMs: 0, waitedMs: 0, isGone: false, hiddenMs: null },
})

test('delivery: a target with a hanging attempt gets no other, however many hang', async () => {
  const queue = createFairQueue(8)
  const kind = createTestKind({ send: () => new Promise(() => {}) })
  const inFlight = createInFlightDeliveries({ pool: {} as Pool, kind, queue, onFree() {} })
  const claimed = Array.from({ length: 1_024 + 2 }, newDelivery)
  inFlight.add(claimed, performance.now())
  await until(() => queue.listRooms(performance.now()).every(({ room }) => room === 0))
  // The others keep their slots.
  expect(inFlight.slotsInUse).toBe(2)
})

test('delivery: a lease that is lost counts, but not that of a timer, which was woken', async () => {
  const count = async (name: string) =>
    (await lostLeases.get()).values.find(({ labels }) => labels['kind'] === name)?.value ?? 0
  for (const [name, lost] of [
    ['webhook', 1],
    ['timer', 0],
  ] as const) {
    const before = await count(name)
    const kind = { ...createTestKind({ send: () => new Promise(() => {}) }), name }
    const queue = createFairQueue(8)
    const inFlight = createInFlightDeliveries({ pool: {} as Pool, kind, queue, onFree() {} })
    const delivery = newDelivery()
    inFlight.add([delivery], performance.now())
    // This worker claims it again.
    inFlight.add([{ ...delivery, token: crypto.randomUUID() }], performance.now())
    expect((await count(name)) - before).toBe(lost)
  }
})

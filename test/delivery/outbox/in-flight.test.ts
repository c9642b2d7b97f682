import { expect, test } from 'bun:test'
import type { Pool } from '../../../src/database/pool.ts'
import { createFairQueue } from '../../../src/delivery/outbox/fair-queue.ts'
import { createInFlightDeliveries } from '../../../src/delivery/outbox/in-flight.ts'
import { until } from '../../support/until.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

test('delivery: a target with a hanging attempt gets no other, however many hang', async () => {
  const queue = createFairQueue(8)
  const kind = createTestKind({ send: () => new Promise(() => {}) })
  const inFlight = createInFlightDeliveries({ pool: {} as Pool, kind, queue, onFree() {} })
  const claimed = Array.from({ length: 1_024 + 2 }, () => ({
    ...{ id: crypto.randomUUID(), token: crypto.randomUUID(), projectId: crypto.randomUUID() },
    ...{ eventId: crypto.randomUUID(), targetId: crypto.randomUUID(), claimCount: 1, attempts: 0 },
    ...{ ageMs: 0, waitedMs: 0, isGone: false, hiddenMs: null },
  }))
  inFlight.add(claimed, performance.now())
  await until(() => queue.listRooms(performance.now()).every(({ room }) => room === 0))
  // The others keep their slots.
  expect(inFlight.slotsInUse).toBe(2)
})

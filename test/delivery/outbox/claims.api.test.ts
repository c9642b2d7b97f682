import { afterEach, expect, spyOn, test } from 'bun:test'
import { claimDeliveries, extendLeases } from '../../../src/delivery/outbox/claims.ts'
import type {
  DeliveryAttempt,
  DeliveryKind,
  DeliveryOutcome,
  Lease,
} from '../../../src/delivery/outbox/delivery-kind.ts'
import { settleDeliveries } from '../../../src/delivery/outbox/settler.ts'
import { RELEASED, toSettlement, type Settlement } from '../../../src/delivery/outbox/settlement.ts'
import { openDeliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { countSeconds, until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())

const DONE = toSettlement({
  outcome: { kind: 'done' },
  hasBegun: true,
  attempt: 1,
  claimCount: 1,
  schedule: [0],
  latencyMs: 1,
  random: 0,
})

/** Returns a delivery kind whose attempts wait for the test. */
function createHeldKind(options: Partial<DeliveryKind> = {}) {
  const sent: {
    job: DeliveryAttempt
    signal: AbortSignal
    answer(outcome: DeliveryOutcome): void
  }[] = []
  const kind = createTestKind({
    ...options,
    send: (job, signal) => new Promise(resolve => void sent.push({ job, signal, answer: resolve })),
  })
  return { sent, kind }
}

/** Inserts an outbox row for a new project without waking a worker. */
async function queue() {
  const { projectId, targetId } = await deliveries.newTarget()
  const [eventId = ''] = await deliveries.append(projectId)
  await deliveries.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${eventId}, 'webhook', ${targetId})
  `
  // No outbox makes another delivery of its event.
  await deliveries.sql`
    insert into delivery_cursors (project_id, kind, seq)
    select project_id, 'webhook', last_seq from event_logs where project_id = ${projectId}
  `
  const claim = async () => {
    const [job] = await claimDeliveries(deliveries.sql, {
      kind: 'webhook',
      requests: [{ targetId, room: 8, dueAt: '-infinity' }],
      maxDeliveries: 8,
      leaseMs: 30_000,
    })
    return job
  }
  return { projectId, targetId, eventId, claim }
}

/** Settles deliveries. Returns those whose lease was lost. */
async function settle(leases: readonly Lease[], settlement: Settlement): Promise<string[]> {
  const settled = leases.map(lease => ({ ...lease, ...settlement }))
  return [...(await settleDeliveries(deliveries.sql, settled)).lost]
}

test('case 17: a worker that lost its lease changes nothing', async () => {
  const { projectId, claim } = await queue()
  const zombie = (await claim())!
  expect(await claim()).toBeUndefined()
  await makeDeliveriesDue(deliveries.sql, projectId)
  const heir = (await claim())!
  expect(heir.id).toBe(zombie.id)
  expect(heir.claimCount).toBe(2)

  const before = await deliveries.pending(projectId)
  const lost = [zombie.id]
  for (const settlement of [DONE, RELEASED])
    expect(await settle([zombie], settlement)).toEqual(lost)
  const extend = { leases: [zombie], leaseMs: 90_000 }
  expect(await extendLeases(deliveries.sql, extend)).toEqual({ extended: [], lost })
  const after = await deliveries.pending(projectId)
  expect(after.map(({ due_in_s: _, ...row }) => row)).toEqual(
    before.map(({ due_in_s: _, ...row }) => row),
  )
  expect(after[0]?.due_in_s).toBeLessThan(31)

  const passed = countSeconds()
  expect(await extendLeases(deliveries.sql, { leases: [heir], leaseMs: 90_000 })).toEqual({
    extended: [heir.id],
    lost: [],
  })
  expect((await deliveries.pending(projectId))[0]?.due_in_s).toBeWithin(90 - passed(), 91)
  expect(await settle([heir], DONE)).toEqual([])
  expect(await deliveries.pending(projectId)).toEqual([])
})

test('case 17: settlements of one batch do not affect each other', async () => {
  const { sql } = deliveries
  const take = async () => {
    const one = await queue()
    return { ...(await one.claim())!, projectId: one.projectId }
  }
  const [ended, released, zombie] = [await take(), await take(), await take()]
  await sql`update outbox set token = gen_random_uuid() where id = ${zombie.id}`
  const batch = [
    { ...released, ...RELEASED },
    { ...zombie, ...DONE },
    { ...ended, ...DONE },
  ]
  expect([...(await settleDeliveries(sql, batch)).lost]).toEqual([zombie.id])
  expect(await deliveries.pending(ended.projectId)).toEqual([])
  expect(await deliveries.ended(ended.projectId)).toMatchObject([{ state: 'delivered' }])
  expect(await deliveries.pending(released.projectId)).toMatchObject([
    { is_taken: false, claim_count: 0 },
  ])
  expect(await deliveries.pending(zombie.projectId)).toMatchObject([{ is_taken: true }])
  expect(await deliveries.ended(zombie.projectId)).toEqual([])
})

test('delivery: a worker that claims its own delivery again aborts its first attempt', async () => {
  const held = createHeldKind()
  const { projectId } = await deliveries.newTarget()
  const outbox = await deliveries.start(held.kind)
  await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(() => held.sent.length === 1)
  await makeDeliveriesDue(deliveries.sql, projectId)
  outbox.wakeWorkers()
  await until(() => held.sent.length === 2)
  expect(held.sent[0]?.signal.aborted).toBe(true)
  held.sent[0]?.answer({ kind: 'gone', reason: 'Too late' })
  held.sent[1]?.answer({ kind: 'done' })
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect((await deliveries.ended(projectId))[0]).toMatchObject({ state: 'delivered' })
})

test('delivery: no request begins that the lease may not outlast', async () => {
  const begun: boolean[] = []
  const kind = createTestKind({ timeoutMs: 100, leaseMs: 5_101 })
  const send: DeliveryKind['send'] = async ({ begin }) => {
    // No lease is extended while the process stands still.
    const clock = spyOn(performance, 'now').mockReturnValue(performance.now() + 5_500)
    begun.push(begin())
    clock.mockRestore()
    return { kind: 'postponed', afterMs: 60_000, reason: 'The lease may end' }
  }
  const { projectId } = await deliveries.newTarget()
  const outbox = await deliveries.start({ ...kind, send })
  await deliveries.append(projectId)
  outbox.wake([projectId])
  // A delivery is not taken before its claim, either.
  await until(() => begun.length > 0)
  await until(async () => (await deliveries.pending(projectId))[0]?.is_taken === false)
  expect(begun).toEqual([false])
  expect(await deliveries.pending(projectId)).toMatchObject([{ attempts: 0 }])
})

test('case 25: a stop waits for in-flight deliveries, and returns the others without using an attempt', async () => {
  const held = createHeldKind()
  const quick = await deliveries.newTarget()
  const slow = await deliveries.newTarget()
  const outbox = await deliveries.start(held.kind, { graceMs: 300 })
  await deliveries.append(quick.projectId)
  await deliveries.append(slow.projectId)
  outbox.wake([quick.projectId, slow.projectId])
  await until(() => held.sent.length === 2)
  const stopped = outbox.stop()
  held.sent.find(({ job }) => job.targetId === quick.targetId)?.answer({ kind: 'done' })
  // No more deliveries are claimed.
  const late = await deliveries.newTarget()
  await deliveries.append(late.projectId)
  outbox.wake([late.projectId])
  await stopped
  expect((await deliveries.ended(quick.projectId))[0]).toMatchObject({ state: 'delivered' })
  expect(held.sent.find(({ job }) => job.targetId === slow.targetId)?.signal.aborted).toBe(true)
  const [row] = await deliveries.pending(slow.projectId)
  expect(row).toMatchObject({ attempts: 0, claim_count: 0, is_taken: false })
  expect(row?.due_in_s).toBeLessThanOrEqual(0)
  expect(held.sent).toHaveLength(2)
})

test('delivery: it is settled once its attempt is recorded, and its slot is free before', async () => {
  const { projectId } = await deliveries.newTarget()
  const held = createHeldKind({ perTarget: 1 })
  const outbox = await deliveries.start(held.kind)
  await deliveries.append(projectId, 2)
  outbox.wake([projectId])
  await until(() => held.sent.length === 1)
  const { promise: recorded, resolve: record } = Promise.withResolvers<void>()
  held.sent[0]!.answer({ kind: 'done', recorded })
  await until(() => held.sent.length === 2)
  held.sent[1]!.answer({ kind: 'done' })
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect(await deliveries.pending(projectId)).toMatchObject([{ is_taken: true, attempts: 0 }])
  // A stop waits for the record, too.
  const stopped = outbox.stop()
  record()
  await stopped
  expect(await deliveries.ended(projectId)).toHaveLength(2)
})

test.each([
  [true, 1, 'The attempt failed with an error of this server'],
  [false, 0, 'An error of this server prevented the attempt'],
])(
  'delivery: a bug counts as an attempt if it has begun: %p',
  async (hasBegun, attempts, reason) => {
    const send: DeliveryKind['send'] = async ({ begin }) => {
      if (hasBegun) begin()
      throw new Error('secret text')
    }
    const outbox = await deliveries.start({ ...createTestKind(), send })
    const { projectId } = await deliveries.newTarget()
    await deliveries.append(projectId)
    outbox.wake([projectId])
    await until(async () => typeof (await deliveries.pending(projectId))[0]?.reason === 'string')
    expect(await deliveries.pending(projectId)).toMatchObject([{ attempts, reason }])
  },
)

test('delivery: a delivery that crashes every worker is given up', async () => {
  const { projectId, claim } = await queue()
  let id: string | undefined
  for (let claims = 1; claims <= 10; claims++) {
    const job = await claim()
    expect(job?.claimCount).toBe(claims)
    id = job?.id
    await makeDeliveriesDue(deliveries.sql, projectId)
  }
  const held = createHeldKind()
  await deliveries.start(held.kind)
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect((await deliveries.ended(projectId))[0]).toMatchObject({
    state: 'dead',
    reason: 'The server stopped 10 times during this attempt',
  })
  expect(held.sent.map(({ job }) => job.id)).not.toContain(id!)
})

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { resumeTarget } from '../../../src/delivery/outbox/enqueue.ts'
import type { DeliveryOutcome } from '../../../src/delivery/outbox/kind.ts'
import { hold } from '../../support/database-lock.ts'
import { until } from '../../support/until.ts'
import { openDeliveries, type Deliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

let deliveries: Deliveries
beforeAll(async () => {
  deliveries = await openDeliveries()
})
afterAll(() => deliveries[Symbol.asyncDispose]())

const resume = (targetId: string) =>
  deliveries.sql.begin(tx => resumeTarget(tx, { kind: 'webhook', targetId }))

/** Resumes one batch, like the outbox; returns whether its target is done. */
async function resumeBatch(maxRows: number): Promise<boolean | undefined> {
  const [row] = await deliveries.sql<{ is_done: boolean }[]>`
    select is_done from resume_deliveries(${maxRows})
  `
  return row?.is_done
}

async function fill(projectId: string, targetId: string, count: number): Promise<void> {
  await deliveries.sql`
    insert into outbox (project_id, event_id, kind, target_id, attempts, available_at)
    select ${projectId}, gen_random_uuid(), 'webhook', ${targetId}, 3, now() + interval '1 hour' + n * interval '1 s'
    from generate_series(1, ${count}::int) as n
  `
}

async function countDue(targetId: string): Promise<number> {
  const [row] = await deliveries.sql<[{ n: number }]>`
    select count(*)::int as n from outbox where target_id = ${targetId} and available_at <= now()
  `
  return row.n
}

test('delivery: all waiting deliveries are resumed, a batch in each transaction, also over a restart', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const other = await deliveries.newTarget()
  await fill(projectId, targetId, 4_500)
  await fill(other.projectId, other.targetId, 1)
  await resume(targetId)
  expect(await countDue(targetId)).toBe(0)
  for (const batches of [1, 2]) {
    expect(await resumeBatch(1_000)).toBe(false)
    expect(await countDue(targetId)).toBe(batches * 1_000)
  }
  // Another process continues.
  const outbox = await deliveries.start(
    createTestKind({
      async send() {
        return { kind: 'postponed', afterMs: 60_000, reason: 'It waits', isAlone: true }
      },
    }),
  )
  await until(async () => (await deliveries.sql`select from resumed_targets`).length === 0)
  await outbox.stop()
  const waiting = await deliveries.sql`
    select from outbox where target_id = ${targetId} and available_at > now() + interval '30 minutes'
  `
  expect(waiting).toHaveLength(0)
  expect(await countDue(other.targetId)).toBe(0)
  await deliveries.sql`delete from outbox`
})

test('delivery: a resumption of 20,000 deliveries is complete, bounded, and in the order of their times', async () => {
  const waiting = 20_000
  const { projectId, targetId } = await deliveries.newTarget()
  const { sql } = deliveries
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, requested_at, available_at, reason)
    select
      ${projectId}, gen_random_uuid(), 'webhook', ${targetId}, now() - interval '4 days',
      now() + interval '1 hour' + n * interval '1 ms', n::text
    from generate_series(1, ${waiting}::int) as n
  `
  await resume(targetId)
  const countMoved = async () => {
    const [row] = await sql<[{ n: number; last: number }]>`
      select count(*)::int as n, coalesce(max(reason::int), 0) as last
      from outbox
      where target_id = ${targetId} and available_at <= now()
    `
    return row
  }
  for (let n = 1_000; n <= waiting; n += 1_000) {
    expect(await resumeBatch(1_000)).toBe(false)
    expect(await countMoved()).toEqual({ n, last: n })
  }
  expect(await resumeBatch(1_000)).toBe(true)
  expect(await resumeBatch(1_000)).toBeUndefined()
  const [order] = await sql<[{ is_kept: boolean }]>`
    select bool_and(o.available_at >= o.before) as is_kept
    from (
      select available_at, lag(available_at) over (order by reason::int) as before
      from outbox
      where target_id = ${targetId}
    ) o
  `
  expect(order.is_kept).toBe(true)
  await sql`delete from outbox`
})

test('delivery: a delivery that fails while its target is resumed waits as usual', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const outbox = await deliveries.start(
    createTestKind({ send: () => Promise.resolve({ kind: 'retry', reason: 'It fails' }) }),
  )
  await deliveries.append(projectId)
  outbox.wake([projectId])
  const readFailed = async () =>
    (
      await deliveries.sql<{ id: string; is_due: boolean; failed_at: Date | null }[]>`
        select id, available_at <= now() as is_due, failed_at
        from outbox
        where target_id = ${targetId} and failed_at is not null
      `
    )[0]
  await until(async () => (await readFailed()) !== undefined)
  await outbox.stop()
  await fill(projectId, targetId, 2)
  await deliveries.sql`update outbox set available_at = now() + interval '20 hours' where id = ${(await readFailed())!.id}`
  await resume(targetId)
  // A delivery that failed before the resumption is due at once. One that fails after it is not.
  expect(await resumeBatch(1)).toBe(false)
  await deliveries.sql`update outbox set failed_at = clock_timestamp() where failed_at is not null`
  expect(await resumeBatch(1_000)).toBe(true)
  expect([await countDue(targetId), (await readFailed())?.is_due]).toEqual([2, false])
  await deliveries.sql`delete from outbox`
})

test('delivery: a delivery in flight while its target is resumed is due when it is settled', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const answer = Promise.withResolvers<DeliveryOutcome>()
  let calls = 0
  const outbox = await deliveries.start(
    createTestKind({
      send: () => (calls++ === 0 ? answer.promise : Promise.resolve({ kind: 'done' })),
    }),
  )
  await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(() => calls === 1)
  await resume(targetId)
  await until(async () => (await deliveries.sql`select from resumed_targets`).length === 0)
  // It was read before the target was enabled.
  answer.resolve({
    kind: 'postponed',
    afterMs: 3_600_000,
    reason: 'The webhook is disabled',
    isAlone: true,
  })
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect(await deliveries.ended(projectId)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  await outbox.stop()
})

test('delivery: a resumed delivery that fails again waits as its schedule says', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  await fill(projectId, targetId, 1)
  await deliveries.append(projectId)
  await deliveries.sql`update outbox set event_id = (select id from events where project_id = ${projectId}), attempts = 1 where target_id = ${targetId}`
  // Before it has dispatched the event, so that the event has one delivery.
  const outbox = await deliveries.start(
    createTestKind({ send: () => Promise.resolve({ kind: 'retry', reason: 'It is down' }) }),
  )
  await resume(targetId)
  outbox.wakeWorkers()
  await until(async () => (await deliveries.pending(projectId))[0]?.attempts === 2)
  await until(async () => (await deliveries.sql`select from resumed_targets`).length === 0)
  expect((await deliveries.pending(projectId))[0]).toMatchObject({ attempts: 2, is_taken: false })
  expect((await deliveries.pending(projectId))[0]?.due_in_s).toBeGreaterThan(200)
  await outbox.stop()
})

test('delivery: the pause of a target that is resumed ends', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  let calls = 0
  const outbox = await deliveries.start(
    createTestKind({
      async send() {
        return calls++ === 0
          ? { kind: 'postponed', afterMs: 86_400_000, reason: 'It is paused' }
          : { kind: 'done' }
      },
    }),
  )
  await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(async () => (await deliveries.pending(projectId))[0]?.reason === 'It is paused')
  await resume(targetId)
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect(await deliveries.ended(projectId)).toMatchObject([{ state: 'delivered', attempts: 1 }])
})

test('delivery: a locked delivery of a resumed target holds up no other target', async () => {
  const { sql } = deliveries
  const all = await Promise.all(Array.from({ length: 3 }, () => deliveries.newTarget()))
  for (const { projectId, targetId } of all) await fill(projectId, targetId, 1)
  const [held = '', ...others] = all.map(({ targetId }) => targetId).toSorted()
  await using lock = await hold(sql, async tx => {
    await tx`set local idle_in_transaction_session_timeout = 0`
    await tx`select from outbox where target_id = ${held} for update`
  })
  for (const targetId of [held, ...others]) await resume(targetId)
  const outbox = await deliveries.start(
    createTestKind({
      async send() {
        return { kind: 'done' }
      },
    }),
  )
  const listWaiting = async () =>
    (
      await sql<{ id: string }[]>`
        select target_id as id from outbox where target_id in ${sql([held, ...others])}
      `
    ).map(({ id }) => id)
  await until(async () => (await listWaiting()).length === 1)
  expect(await listWaiting()).toEqual([held])
  await lock.release()
  await until(async () => (await listWaiting()).length === 0)
  await outbox.stop()
})

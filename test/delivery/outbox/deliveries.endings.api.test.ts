import { afterAll, beforeAll, expect, test } from 'bun:test'
import { reap } from '../../../src/access/organizations/deletion.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import type { Outbox } from '../../../src/delivery/outbox/outbox.ts'
import { sweep, SWEEPS } from '../../../src/server/sweeps.ts'
import { until } from '../../support/until.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { forProcess } from '../../support/for-file.ts'
import { openDeliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

const deliveries = forProcess(openDeliveries)
let outbox: Outbox
let pool: Pool
/** Events whose attempts fail; all others succeed. */
const failing = new Set<string>()
const sent: string[] = []
beforeAll(async () => {
  pool = createPool(deliveries.databaseUrl, { name: 'test', max: 1 })
  outbox = await deliveries.start(
    createTestKind({
      async send({ eventId }) {
        sent.push(eventId)
        return failing.has(eventId) ? { kind: 'retry', reason: 'http_500' } : { kind: 'done' }
      },
    }),
  )
})
afterAll(async () => {
  await pool.end()
  await deliveries.clear()
})

/** Appends an event to a new project; resolves when its first attempt has failed. */
async function newPending() {
  const { projectId, targetId } = await deliveries.newTarget()
  const [eventId = ''] = await deliveries.append(projectId)
  failing.add(eventId)
  outbox.wake([projectId])
  await until(async () => (await deliveries.pending(projectId))[0]?.attempts === 1)
  return { projectId, targetId, eventId }
}

test('contract §11 a delivery whose project was removed meanwhile is cancelled', async () => {
  const projectId = crypto.randomUUID()
  await deliveries.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${crypto.randomUUID()}, 'webhook', ${crypto.randomUUID()})
  `
  outbox.wakeWorkers()
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect(await deliveries.pending(projectId)).toEqual([])
  expect(await deliveries.ended(projectId)).toMatchObject([{ state: 'cancelled', attempts: 0 }])
})

test('contract §11 deleting an event cancels its pending deliveries and removes its dead letters', async () => {
  const { projectId, eventId, targetId } = await newPending()
  const { sql } = deliveries
  await sql`
    insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
    values (${crypto.randomUUID()}, ${projectId}, ${eventId}, 'push', ${targetId}, 1, 'x')
  `
  await sql`delete from events where project_id = ${projectId} and id = ${eventId}`
  expect(await deliveries.pending(projectId)).toEqual([])
  expect((await deliveries.ended(projectId))[0]).toMatchObject({
    state: 'cancelled',
    attempts: 1,
    reason: 'The event was deleted',
  })
  expect(await sql`select from dead_letters where project_id = ${projectId}`).toHaveLength(0)
})

test('contract §11 a hidden event is not delivered until it is restored', async () => {
  const { projectId, eventId } = await newPending()
  const { sql } = deliveries
  await sql`update events set deleted_at = clock_timestamp() where id = ${eventId}`
  await makeDeliveriesDue(sql, projectId)
  outbox.wakeWorkers()
  await until(async () => {
    const [row] = await deliveries.pending(projectId)
    return row !== undefined && !row.is_taken && row.due_in_s > 5
  })
  expect((await deliveries.pending(projectId))[0]?.attempts).toBe(1)

  failing.delete(eventId)
  await sql`update events set deleted_at = null where id = ${eventId}`
  await makeDeliveriesDue(sql, projectId)
  outbox.wakeWorkers()
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect((await deliveries.ended(projectId))[0]).toMatchObject({ state: 'delivered', attempts: 2 })
})

test('contract §11 an event that stays hidden is never delivered', async () => {
  const { projectId, eventId } = await newPending()
  await deliveries.sql`
    update events set deleted_at = clock_timestamp() - interval '20 seconds' where id = ${eventId}
  `
  const attempts = sent.filter(id => id === eventId).length
  await makeDeliveriesDue(deliveries.sql, projectId)
  outbox.wakeWorkers()
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect((await deliveries.ended(projectId))[0]).toMatchObject({ state: 'cancelled', attempts: 1 })
  expect(sent.filter(id => id === eventId)).toHaveLength(attempts)
})

test('contract §11 deleting a project cancels its deliveries and deletes their rows', async () => {
  const { projectId, eventId } = await newPending()
  const { sql } = deliveries
  await sql`update projects set deleted_at = now() where id = ${projectId}`
  const attempts = sent.filter(id => id === eventId).length
  await makeDeliveriesDue(sql, projectId)
  outbox.wakeWorkers()
  await until(async () => (await deliveries.pending(projectId)).length === 0)
  expect(sent.filter(id => id === eventId)).toHaveLength(attempts)

  const other = await newPending()
  await sql`update projects set deleted_at = now() where id = ${other.projectId}`
  await reap(pool)
  for (const project of [projectId, other.projectId]) {
    expect(await deliveries.pending(project)).toEqual([])
    expect(await deliveries.ended(project)).toEqual([])
  }
})

test('contract §11 records are kept for 30 days and dead letters for 90', async () => {
  const { projectId } = await deliveries.newTarget()
  const { sql } = deliveries
  const insert = async (days: number) => {
    const event = crypto.randomUUID()
    await sql`
      insert into deliveries (project_id, event_id, kind, target_id, state, at)
      values (
        ${projectId}, ${event}, 'webhook', ${event}, 'delivered', now() - ${days} * interval '1 day'
      )
    `
    await sql`
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason, at)
      values (
        ${event}, ${projectId}, ${event}, 'webhook', ${event}, 1, 'x', now() - ${days} * interval '1 day'
      )
    `
  }
  const withhold = (days: number) => sql`
    insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids, at)
    values (
      ${projectId}, ${crypto.randomUUID()}, 'webhook', 'x', array[${crypto.randomUUID()}]::uuid[],
      now() - ${days} * interval '1 day'
    )
  `
  for (const days of [29.9, 30.1]) await withhold(days)
  for (const days of [29.9, 30.1, 89.9, 90.1]) await insert(days)
  const swept: number[] = []
  for (const table of ['deliveries', 'withheld_deliveries', 'dead_letters']) {
    for (const one of SWEEPS) if (one.table === table) swept.push(await sweep(pool, one))
  }
  expect(swept).toEqual([3, 1, 1])
  expect(await deliveries.ended(projectId)).toHaveLength(2)
  expect(await sql`select from dead_letters where project_id = ${projectId}`).toHaveLength(3)
})

test('delivery: a delivered record survives a redelivery whose event is deleted', async () => {
  const { projectId } = await deliveries.newTarget()
  const [eventId = ''] = await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  const { sql } = deliveries
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select project_id, event_id, kind, target_id, now() + interval '1 hour'
    from deliveries
    where project_id = ${projectId}
  `
  await sql`delete from events where id = ${eventId} and project_id = ${projectId}`
  expect(await deliveries.pending(projectId)).toEqual([])
  expect((await deliveries.ended(projectId))[0]).toMatchObject({ state: 'delivered' })
})

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Fault } from '../../src/errors.ts'
import { toId } from '../../src/ids.ts'
import { BACKLOG_FULL, MAX_BACKLOG, markFullBacklogs } from '../../src/webhooks/dispatch.ts'
import { createWebhookKind } from '../../src/webhooks/kind.ts'
import { openDeliveries, type Deliveries } from '../support/deliveries.ts'
import { createTestKind } from '../support/delivery-kind.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { boot, type Booted } from '../support/server.ts'
import { until } from '../support/until.ts'
import { createWebhooks, dispatchAfter } from '../support/webhooks.ts'

const DAY_MS = 86_400_000

let server: Booted
let webhooks: ReturnType<typeof createWebhooks>
let receiver: Receiver
let deliveries: Deliveries
beforeAll(async () => {
  server = await boot({ egressAllowCidrs: ['127.0.0.0/8'] }, { kinds: [] })
  webhooks = createWebhooks(server)
  receiver = await startReceiver({ reply: { status: 500 } })
  deliveries = await openDeliveries()
})
afterAll(async () => {
  await deliveries[Symbol.asyncDispose]()
  await receiver.close()
  await webhooks.close()
  await server[Symbol.asyncDispose]()
})

test('delivery: a delivery that is postponed repeatedly ends as a dead letter after its maximum age', async () => {
  let calls = 0
  const outbox = await deliveries.start(
    createTestKind({
      async send() {
        calls++
        return {
          kind: 'postponed',
          afterMs: 250,
          giveUpAfterMs: 3 * DAY_MS,
          reason: 'It is paused',
        }
      },
    }),
  )
  const { projectId } = await deliveries.newTarget()
  await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(() => calls > 0)
  // The age of the delivery counts, not the age of the event.
  await deliveries.sql`
    update events set created_at = created_at - interval '30 days' where project_id = ${projectId}
  `
  const before = calls
  await until(() => calls > before + 1)
  expect(await deliveries.ended(projectId)).toEqual([])
  await deliveries.sql`
    update outbox set requested_at = now() - interval '3 days' where project_id = ${projectId}
  `
  await until(async () => (await deliveries.ended(projectId)).length === 1)
  expect(await deliveries.ended(projectId)).toMatchObject([
    { state: 'dead', attempts: 0, reason: 'It is paused. It waited for 72 hours' },
  ])
})

test('delivery: an unreachable database costs a delivery no attempt', async () => {
  let calls = 0
  await using own = await openDeliveries()
  const outbox = await own.start(
    createTestKind({
      async send() {
        if (calls++ === 0) throw new Fault('unavailable', 'The database did not answer in time')
        return { kind: 'done' }
      },
    }),
  )
  const { projectId } = await own.newTarget()
  await own.append(projectId)
  outbox.wake([projectId])
  await until(async () => (await own.ended(projectId)).length === 1)
  expect(await own.ended(projectId)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  expect(calls).toBe(2)
})

test('delivery: a delivery that waited behind a pause is attempted once before it is given up', async () => {
  const name = `/${crypto.randomUUID()}`
  const webhook = await webhooks.create(`${receiver.url}${name}`)
  const event = await webhook.newEvent()
  for (let n = 0; n < 10; n++) await webhook.send(event)
  const count = () => receiver.received.filter(({ path }) => path === name).length
  const postponed = {
    kind: 'postponed',
    reason: 'The webhook is paused',
    giveUpAfterMs: 3 * DAY_MS,
  }
  expect(await webhook.send(event, 1)).toMatchObject(postponed)
  expect(count()).toBe(10)
  const late = { waitedMs: 3 * DAY_MS + 1 }
  expect(await webhook.send(event, 1, late)).toMatchObject({ kind: 'retry' })
  expect(await webhook.send(event, 2, late)).toMatchObject(postponed)
  expect(count()).toBe(11)
})

test('delivery: a sent message counts as sent, even if its outcome could not be recorded', async () => {
  const name = `/${crypto.randomUUID()}`
  receiver.script(name, { status: 200 })
  const webhook = await webhooks.create(`${receiver.url}${name}`)
  const event = await webhook.newEvent()
  await server.sql.begin(async tx => {
    // Longer than any statement waits for a lock.
    await tx`select from webhooks where id = ${webhook.uuid} for update`
    expect(await webhook.send(event)).toEqual({ kind: 'done' })
  })
  expect(await webhook.attempts()).toEqual([])
})

test('delivery: beyond 100,000 deliveries that wait for a webhook, new events are recorded and not queued', async () => {
  const webhook = await webhooks.create(receiver.url)
  const project = webhook.organization.project.uuid
  const kind = createWebhookKind(webhooks.parts)
  const { sql } = server
  const fill = async (count: number) => {
    for (let left = count; left > 0; left -= 5_000) {
      await sql`
        insert into outbox (id, project_id, event_id, kind, target_id)
        select gen_random_uuid(), ${project}, gen_random_uuid(), 'webhook', ${webhook.uuid}
        from generate_series(1, ${Math.min(left, 5_000)}::int)
      `
    }
  }
  const readFlag = async () => (await webhook.get())['backlogFullAt']
  const dispatch = async () => {
    const event = await webhook.newEvent()
    const [row] = await sql<[{ seq: number }]>`
      select last_seq::int as seq from event_logs where project_id = ${project}
    `
    const { count } = await dispatchAfter(sql, kind, { projectId: project, seq: row.seq - 1 })
    return { event, written: count }
  }

  await fill(MAX_BACKLOG - 1)
  await markFullBacklogs(sql, true)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
  await markFullBacklogs(sql, true)
  expect(await readFlag()).toBeString()
  const { event, written } = await dispatch()
  expect(written).toBe(0)
  const records = await sql<{ event_id: string; state: string; reason: string }[]>`
    select event_id, state, reason from deliveries where target_id = ${webhook.uuid}
  `
  expect(records.map(row => ({ ...row, event_id: toId('evt', row.event_id) }))).toEqual([
    { event_id: event, state: 'failed', reason: BACKLOG_FULL },
  ])

  // Frees a tenth of the queue.
  await sql`
    delete from outbox where id = any(array(
      select id from outbox where target_id = ${webhook.uuid} limit ${MAX_BACKLOG / 10}
    ))
  `
  await markFullBacklogs(sql, false)
  expect(await readFlag()).toBeString()
  await sql`
    delete from outbox where id = (select id from outbox where target_id = ${webhook.uuid} limit 1)
  `
  await markFullBacklogs(sql, false)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
})

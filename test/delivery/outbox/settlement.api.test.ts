import { afterEach, expect, test } from 'bun:test'
import { toId } from '../../../src/base/ids.ts'
import { startOutbox } from '../../../src/delivery/outbox/outbox.ts'
import { HIDDEN } from '../../../src/delivery/outbox/settlement.ts'
import {
  BACKLOG_FULL,
  MAX_BACKLOG,
  sweepWebhooks,
} from '../../../src/delivery/webhooks/dispatch.ts'
import { createWebhookKind } from '../../../src/delivery/webhooks/sender.ts'
import { forFile, forProcess } from '../../support/for-file.ts'
import { until } from '../../support/until.ts'
import { appendEvents, openDeliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'
import { bootForWebhooks, dispatchAfter } from '../../support/worlds/webhooks.ts'

const world = forFile(() => bootForWebhooks({ reply: { status: 500 } }))
const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())

test('delivery: an event that is deleted after its claim holds up no other event of the target', async () => {
  const sent: string[] = []
  const outbox = await deliveries.start(
    createTestKind({
      perTarget: 1,
      async send({ eventId }) {
        sent.push(eventId)
        return sent.length === 1 ? HIDDEN : { kind: 'done' }
      },
    }),
  )
  const { projectId } = await deliveries.newTarget()
  const events = await deliveries.append(projectId, 3)
  outbox.wake([projectId])
  await until(async () => (await deliveries.ended(projectId)).length === 2)
  expect(sent.toSorted()).toEqual(events.toSorted())
})

test('delivery: a backlog whose webhook is enabled after 4 days outlives an endpoint that still fails', async () => {
  const count = 60
  const name = `/${crypto.randomUUID()}`
  let status = 500
  world.receiver.script(name, () => ({ status }))
  const requests = () => world.receiver.received.filter(({ path }) => path === name)
  const { sql } = world.server
  const webhook = await world.webhooks.create(`${world.receiver.url}${name}`)
  const projectId = webhook.organization.project.uuid
  await webhook.admin.post(`${webhook.path}/disable`)
  await sql`update webhooks set disabled_at = now() - interval '4 days' where id = ${webhook.uuid}`
  const events = await appendEvents(sql, projectId, count)
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, requested_at, available_at, claimed_at)
    select
      e.project_id, e.id, 'webhook', ${webhook.uuid}, now() - interval '4 days', now() + interval '1 hour',
      now() - interval '4 days'
    from events e
    where e.project_id = ${projectId}
  `
  const countEnded = async () =>
    (await sql`select from deliveries where project_id = ${projectId}`).length
  const { pool } = world.webhooks.parts
  const outbox = await startOutbox({ pool, kinds: [createWebhookKind(world.webhooks.parts)] })

  await webhook.admin.post(`${webhook.path}/enable`)
  await until(async () => {
    const taken =
      await sql`select from outbox where project_id = ${projectId} and token is not null`
    return taken.length === 0 && (await webhook.get()).breaker['state'] === 'paused'
  })
  expect(await countEnded()).toBe(0)
  // Ten failures pause it, while up to seven other attempts run.
  expect(requests().length).toBeWithin(10, 18)

  status = 200
  await webhook.admin.post(`${webhook.path}/enable`)
  await until(async () => (await countEnded()) === count)
  const states = await sql`
    select state, attempts <= 2 as is_early, count(*)::int as n
    from deliveries where project_id = ${projectId} group by 1, 2
  `
  expect([...states]).toEqual([{ state: 'delivered', is_early: true, n: count }])
  expect(new Set(requests().map(({ headers }) => headers['webhook-id'])).size).toBe(events.length)
  await outbox.stop()
})

test('delivery: beyond 100,000 deliveries that wait for a webhook, new events are recorded and not queued', async () => {
  const webhook = await world.webhooks.create(world.receiver.url)
  const project = webhook.organization.project.uuid
  const kind = createWebhookKind(world.webhooks.parts)
  const { sql } = world.server
  const fill = async (count: number) => {
    for (let left = count; left > 0; left -= 5_000) {
      await sql`
        insert into outbox (id, project_id, event_id, kind, target_id)
        select gen_random_uuid(), ${project}, gen_random_uuid(), 'webhook', ${webhook.uuid}
        from generate_series(1, ${Math.min(left, 5_000)}::int)
      `
    }
  }
  const recover = async () => {
    const since = new Date(Date.now() - 3_600_000).toISOString()
    return (await webhook.admin.post(`${webhook.path}/recover`, { since })).status
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
  await sweepWebhooks(sql, true)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
  await sweepWebhooks(sql, true)
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
  await sweepWebhooks(sql, false)
  expect(await readFlag()).toBeString()
  expect(await recover()).toBe(409)
  await sql`
    delete from outbox where id = (select id from outbox where target_id = ${webhook.uuid} limit 1)
  `
  await sweepWebhooks(sql, false)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
  // A recovery stops before it keeps out new events.
  expect(await recover()).toBe(409)
  await sql`
    delete from outbox where id = any(array(
      select id from outbox where target_id = ${webhook.uuid} limit 1
    ))
  `
  expect(await recover()).toBe(200)
})

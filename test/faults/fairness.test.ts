import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startInbox, type Inbox } from '../support/servers/inbox.ts'
import { until } from '../support/until.ts'
import { openDeliveries, type Deliveries } from '../support/worlds/deliveries.ts'
import { addTarget, createTestKind } from '../support/worlds/delivery-kind.ts'

let deliveries: Deliveries
let inbox: Inbox
beforeAll(async () => {
  inbox = await startInbox()
  deliveries = await openDeliveries()
})
afterAll(async () => {
  await deliveries[Symbol.asyncDispose]()
  await inbox[Symbol.asyncDispose]()
})

const BACKLOG = 200_000

test('case 23: a target with 200,000 pending deliveries does not delay a new one', async () => {
  const big = await deliveries.newTarget()
  await deliveries.append(big.projectId, BACKLOG)
  const { sql } = deliveries
  await sql`
    insert into outbox (project_id, event_id, kind, target_id)
    select project_id, id, 'webhook', ${big.targetId} from events where project_id = ${big.projectId}
  `
  const outbox = await deliveries.start(createTestKind({ url: inbox.url }))
  await until(() => inbox.counts().size > 100)
  const small = await deliveries.newTarget()
  const [eventId] = await deliveries.append(small.projectId)
  outbox.wake([small.projectId])
  await until(() => inbox.counts().has(`${eventId} ${small.targetId}`))
  // All earlier deliveries would come first.
  expect(inbox.counts().size).toBeLessThan(BACKLOG / 2)
  await outbox.stop()
  // Leaves the outbox empty for the other tests.
  await sql`delete from outbox where project_id = ${big.projectId}`
})

test('case 23: 300 hanging targets do not delay one that answers', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const { sql } = deliveries
  for (let made = 0; made < 300; made++) {
    inbox.answer(await addTarget(sql, projectId), () => {})
  }
  const outbox = await deliveries.start(createTestKind({ url: inbox.url, timeoutMs: 15_000 }), {
    graceMs: 100,
  })
  const hanging = (events: string[]) =>
    inbox.receipts.filter(receipt => events.includes(receipt.eventId)).length
  const first = await deliveries.append(projectId, 2)
  const firstMs = performance.now()
  outbox.wake([projectId])
  // All of them hang: free slots come only from attempts that time out.
  await until(() => hanging(first) > 300)
  await until(() => first.every(eventId => inbox.counts().has(`${eventId} ${targetId}`)))
  const waitedMs = performance.now() - firstMs
  const [eventId] = await deliveries.append(projectId)
  const startedMs = performance.now()
  outbox.wake([projectId])
  await until(() => inbox.counts().has(`${eventId} ${targetId}`))
  // The first time waited for attempts to time out.
  expect((performance.now() - startedMs) / waitedMs).toBeLessThan(1)
  await outbox.stop()
  await sql`delete from outbox where project_id = ${projectId}`
})

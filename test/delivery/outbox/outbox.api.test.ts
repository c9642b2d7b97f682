import { afterAll, beforeAll, expect, test } from 'bun:test'
import { enqueueDeliveries } from '../../../src/delivery/outbox/enqueue.ts'
import type { Outbox } from '../../../src/delivery/outbox/outbox.ts'
import { startInbox, type Inbox } from '../../support/servers/inbox.ts'
import { until } from '../../support/until.ts'
import { openDeliveries, type Deliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'

let deliveries: Deliveries
let inbox: Inbox
let outbox: Outbox
beforeAll(async () => {
  inbox = await startInbox()
  deliveries = await openDeliveries()
  outbox = await deliveries.start(createTestKind({ url: inbox.url }))
})
afterAll(async () => {
  await deliveries[Symbol.asyncDispose]()
  await inbox[Symbol.asyncDispose]()
})

/** Appends an event to a project with one target; resolves when its first attempt is recorded. */
async function deliverTo(respond: Parameters<Inbox['answer']>[1]) {
  const { projectId, targetId } = await deliveries.newTarget()
  inbox.answer(targetId, respond)
  const [eventId = ''] = await deliveries.append(projectId)
  outbox.wake([projectId])
  await untilAttempted(projectId)
  return { projectId, targetId, eventId }
}

/** Resolves when no event or delivery of the project is new, due or in flight. */
async function untilAttempted(projectId: string): Promise<void> {
  await until(async () => {
    const pending = await deliveries.pending(projectId)
    const ended = await deliveries.ended(projectId)
    const isWaiting = (row: { is_taken: boolean; due_in_s: number }) =>
      !row.is_taken && row.due_in_s > 0
    return pending.length + ended.length > 0 && pending.every(isWaiting)
  })
}

const answerWith =
  (status: number, headers: Record<string, string> = {}): Parameters<Inbox['answer']>[1] =>
  response =>
    response.writeHead(status, headers).end()

test.each([
  [true, 1, 'The attempt failed with an error of this server'],
  [false, 0, 'An error of this server prevented the attempt'],
])(
  'delivery: a bug counts as an attempt if it has begun: %p',
  async (hasBegun, attempts, reason) => {
    await using own = await openDeliveries()
    const failing = await own.start(
      createTestKind({
        async send({ begin }) {
          if (hasBegun) begin()
          throw new Error('secret text')
        },
      }),
    )
    const { projectId } = await own.newTarget()
    await own.append(projectId)
    failing.wake([projectId])
    await until(async () => (await own.pending(projectId))[0]?.is_taken === false)
    await until(async () => (await own.pending(projectId))[0]?.reason !== null)
    expect(await own.pending(projectId)).toMatchObject([{ attempts, reason }])
  },
)

test('delivery: enqueue sends to a target again, at once and with a full schedule', async () => {
  const { projectId, targetId, eventId } = await deliverTo(answerWith(410))
  inbox.answer(targetId)
  const resend = { kind: 'webhook', projectId, targetId } as const
  const stranger = crypto.randomUUID()
  const queued = await deliveries.sql.begin(tx =>
    enqueueDeliveries(tx, resend, [eventId, stranger]),
  )
  expect(queued).toBe(1)
  outbox.wakeWorkers()
  await until(async () => (await deliveries.ended(projectId))[0]?.state === 'delivered')
  const dead = await deliveries.sql`select from dead_letters where project_id = ${projectId}`
  expect(dead).toHaveLength(0)
  expect((await deliveries.ended(projectId))[0]).toMatchObject({ attempts: 1, reason: null })

  const { projectId: other } = await deliveries.newTarget()
  const across = deliveries.sql.begin(tx =>
    enqueueDeliveries(tx, { ...resend, projectId: other }, [eventId]),
  )
  expect(await across).toBe(0)
})

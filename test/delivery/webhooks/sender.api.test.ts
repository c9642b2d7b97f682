import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { parseId, toId } from '../../../src/base/ids.ts'
import { sweep, SWEEPS } from '../../../src/server/sweeps.ts'
import { createWebhookKind } from '../../../src/delivery/webhooks/sender.ts'
import { ageWebhook } from '../../support/worlds/ageing.ts'
import { insertDeadLetter } from '../../support/worlds/deliveries.ts'
import { forProcess } from '../../support/for-file.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { toCursor } from '../../../src/http/paging.ts'
import {
  createRecordingSender,
  bootForWebhooks,
  dispatchAfter,
  newChannel,
} from '../../support/worlds/webhooks.ts'

const world = forProcess(bootForWebhooks)

/** Returns the events of a webhook's pending deliveries, oldest first. */
async function listPending(uuid: string): Promise<string[]> {
  const rows = await world.server.sql<{ event_id: string }[]>`
    select event_id from outbox
    where kind = 'webhook' and target_id = ${uuid} and available_at <= now()
    order by event_id
  `
  return rows.map(row => toId('evt', row.event_id))
}

test('design §6 a test is sent at once, and its answer has the outcome', async () => {
  await using receiver = await startReceiver({ reply: { status: 418, body: 'teapot' } })
  const webhook = await world.webhooks.create(receiver.url)
  const answer = await webhook.admin.post(`${webhook.path}/test`)
  expect(answer.body.data).toMatchObject({
    kind: 'webhook.test',
    eventId: null,
    outcome: 'failed',
    status: 418,
    reason: 'The receiver answered 418',
    response: 'teapot',
  })
  const { body, headers } = receiver.received[0]!
  expect(new Webhook(webhook.secret).verify(body, headers)).toMatchObject({
    type: 'webhook.test',
    data: { project: { id: webhook.organization.project.id } },
  })
  expect((await webhook.get()).breaker['failures']).toBe(0)
  expect((await webhook.attempts())[0]).toEqual(answer.body.data)
})

test('contract §9 erasure removes what webhooks answered, also to a request of that moment', async () => {
  await using receiver = await startReceiver({
    reply: ({ body }) => ({ status: 200, body: `seen ${body}` }),
  })
  const webhook = await world.webhooks.create(receiver.url)
  const newEvent = (userId?: string) =>
    webhook.newEvent({ channelName: 'payments', title: 't', userId })
  const events = [await newEvent('ada'), await newEvent('ada'), await newEvent()]
  await webhook.send(events[0]!)
  const path = `/api/projects/${webhook.organization.project.id}/users/ada`
  const { egress } = world.webhooks.parts
  const erasing = createRecordingSender({
    ...world.webhooks.parts,
    egress: {
      ...egress,
      async send(request) {
        await webhook.admin.delete(path)
        return egress.send(request)
      },
    },
  })
  await erasing(webhook.toAttempt(events[1]!))
  await webhook.send(events[2]!)
  expect(receiver.received.filter(({ body }) => body.includes('"userId":"ada"'))).toHaveLength(2)
  const attempts = await webhook.attempts()
  expect(attempts.map(({ outcome }) => outcome)).toEqual(['delivered', 'delivered', 'delivered'])
  expect(attempts.map(({ response }) => response)).toEqual([
    expect.stringContaining('seen'),
    null,
    null,
  ])
  // A hash of the request would show whether a guessed name is right.
  const hashes = await world.server.sql<{ hash: string }[]>`
    select encode(body_hash, 'hex') as hash from webhook_attempts where webhook_id = ${webhook.uuid} order by id
  `
  const none = '0'.repeat(64)
  expect(hashes.map(({ hash }) => hash === none)).toEqual([true, true, false])
})

test('one test per 3 s: tests cannot be used to flood a third party', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => webhook.admin.post(`${webhook.path}/test`)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 429, 429, 429, 429])
  expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('3')
  expect(receiver.received).toHaveLength(1)
  await ageWebhook(world.server.sql, webhook.uuid, '3 seconds')
  expect((await webhook.admin.post(`${webhook.path}/test`)).status).toBe(200)
})

test('delivery: one attempt is sent again, on request', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  const event = await webhook.newEvent()
  await webhook.send(event)
  await webhook.admin.post(`${webhook.path}/test`)
  const [tested, attempt] = await webhook.attempts()
  const resend = (id: unknown) => webhook.admin.post(`${webhook.path}/attempts/${id}/resend`)
  const { uuid: project } = webhook.organization.project
  await insertDeadLetter(world.server, project, { eventId: event, webhookId: webhook.id })
  expect((await resend(attempt!['id'])).body.data).toEqual({ events: 1, nextCursor: null })
  expect(await listPending(webhook.uuid)).toEqual([event])
  expect(
    await world.server.sql`select from dead_letters where project_id = ${project}`,
  ).toHaveLength(0)
  // A delivery that waits becomes due, with all attempts of the schedule.
  await world.server.sql`
    update outbox set attempts = 5, available_at = now() + interval '1 day' where project_id = ${project}
  `
  await resend(attempt!['id'])
  expect(await listPending(webhook.uuid)).toEqual([event])
  const rows = await world.server.sql`select attempts from outbox where project_id = ${project}`
  expect([...rows]).toEqual([{ attempts: 0 }])
  expect((await resend(tested!['id'])).body.code).toBe('conflict')
  expect((await resend('att_01kadz5p6vf2w8y3m4n5q6r7s8')).status).toBe(404)
  const other = await world.webhooks.create(receiver.url)
  const foreign = `${other.path}/attempts/${attempt!['id']}/resend`
  expect((await other.admin.post(foreign)).status).toBe(404)
  await webhook.admin.post(`${webhook.path}/disable`)
  expect((await resend(attempt!['id'])).body.code).toBe('conflict')
})

test('delivery: recovery sends the events that arrived in a range, match the webhook and were not sent', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  const project = webhook.organization.project.uuid
  const channel = await newChannel(world.server, project, 'payments')
  await webhook.admin.patch(webhook.path, { channels: [channel.id] })
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
  // Senders choose the timestamp: years ago, or a little ahead.
  const event = (timestamp: string, channelName = 'payments') =>
    webhook.newEvent({ channelName, title: 't', timestamp })
  await event(at(30))
  const had = await event(at(30))
  const failed = await event('2001-01-01T00:00:00Z')
  await event(at(30), 'other')
  const never = await event(at(-3))
  await event(at(30))
  for (const [nth, minutes] of [90, 50, 40, 35, 30, 5].entries()) {
    await world.server.sql`
      update events set created_at = ${at(minutes)} where project_id = ${project} and seq = ${nth + 1}
    `
  }
  await webhook.send(had)
  receiver.script('/', { status: 500 })
  await webhook.send(failed)
  const recover = (body: object) => webhook.admin.post(`${webhook.path}/recover`, body)
  const answer = await recover({ since: at(60), until: at(10) })
  expect(answer.body.data).toEqual({ events: 2, nextCursor: null })
  expect(await listPending(webhook.uuid)).toEqual([failed, never])
  expect((await recover({ since: at(100) })).body.data).toEqual({ events: 4, nextCursor: null })
  expect((await recover({ since: at(1) })).body.data).toEqual({ events: 0, nextCursor: null })
  expect((await recover({ since: at(100), until: at(95) })).body.data.events).toBe(0)
  expect((await recover({ since: at(100), cursor: toCursor(['4']) })).body.data.events).toBe(2)
  const refused = await recover({ since: at(60 * 24 * 31) })
  expect([refused.status, refused.body.details[0].path]).toEqual([400, ['since']])
  expect((await recover({ since: at(1), cursor: 'x' })).status).toBe(400)
  expect((await recover({ since: 'yesterday' })).status).toBe(400)
})

test('delivery: a batch of events becomes one delivery per matching webhook', async () => {
  const url = 'http://127.0.0.1:9'
  await expect(world.webhooks.create(url)).rejects.toThrow('belongs to another protocol')
  const all = await world.webhooks.create('http://127.0.0.1:9001')
  const project = all.organization.project
  const channel = await newChannel(world.server, project.uuid, 'payments')
  const path = `/api/projects/${project.id}/webhooks`
  const make = async (body: object) =>
    parseId(
      'whk',
      (await all.admin.post(path, { url: 'http://127.0.0.1:9001', ...body })).body.data.id,
    )!
  const some = await make({ channels: [channel.id] })
  const disabled = await make({})
  await all.admin.post(`${path}/${toId('whk', disabled)}/disable`)
  const deleted = await make({})
  await all.admin.delete(`${path}/${toId('whk', deleted)}`)
  const ids: string[] = []
  for (const channelName of ['payments', 'other', 'payments']) {
    ids.push(parseId('evt', await all.newEvent({ channelName, title: 't' }))!)
  }
  const late = await make({})
  const kind = createWebhookKind(world.webhooks.parts)
  const range = { projectId: project.uuid, seq: 1 }
  expect((await dispatchAfter(world.server.sql, kind, range)).count).toBe(3)
  // A repeated dispatch writes nothing.
  expect((await dispatchAfter(world.server.sql, kind, range)).count).toBe(0)
  const rows = await world.server.sql<{ event_id: string; target_id: string }[]>`
    select event_id, target_id from outbox where project_id = ${project.uuid}
  `
  expect(rows.map(row => `${row.event_id} ${row.target_id}`).sort()).toEqual(
    [`${ids[1]} ${all.uuid}`, `${ids[2]} ${all.uuid}`, `${ids[2]} ${some}`].sort(),
  )
  const names = await kind.getTargetNames(world.server.sql, {
    projectId: project.uuid,
    targetIds: [all.uuid, deleted, late],
  })
  expect([...names]).toEqual([
    [all.uuid, '127.0.0.1:9001'],
    [late, '127.0.0.1:9001'],
  ])
})

test('contract §11 attempts are kept for 30 days; a deleted webhook is removed after its attempts', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  await webhook.send(await webhook.newEvent())
  await webhook.send(await webhook.newEvent())
  const [, oldest] = await webhook.attempts()
  await world.server.sql`
    update webhook_attempts set started_at = started_at - interval '30 days'
    where id = ${parseId('att', String(oldest!['id']))!}
  `
  await sweepWebhooks()
  expect(await webhook.attempts()).toHaveLength(1)
  await webhook.admin.delete(webhook.path)
  const count = async () =>
    (await world.server.sql`select from webhooks where id = ${webhook.uuid}`).count +
    (await world.server.sql`select from webhook_attempts where webhook_id = ${webhook.uuid}`).count
  expect(await count()).toBe(2)
  await world.server.sql`
    update webhooks set deleted_at = now() - interval '2 hours' where id = ${webhook.uuid}
  `
  await sweepWebhooks()
  expect(await count()).toBe(0)
})

async function sweepWebhooks(): Promise<void> {
  for (const one of SWEEPS) {
    if (one.table.startsWith('webhook')) await sweep(world.webhooks.parts.pool, one)
  }
}

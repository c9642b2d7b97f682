import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { NO_MATCHING_WEBHOOK } from '../../src/webhooks/dispatch.ts'
import { appendEvents } from '../support/deliveries.ts'
import { createKey } from '../support/keys.ts'
import { newMember, newOrganization } from '../support/signed-in-account.ts'
import { createRequests } from '../support/project.ts'
import { startReceiver } from '../support/receiver.ts'
import { boot, type Booted } from '../support/server.ts'
import { newTenant } from '../support/tenant.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let server: Booted
beforeAll(async () => {
  server = await boot({ egressAllowCidrs: ['127.0.0.0/8'] })
})
afterAll(() => server[Symbol.asyncDispose]())

test('delivery.md an event that is answered 201 reaches the webhook, signed, and its record says so', async () => {
  await using receiver = await startReceiver()
  const organization = await newOrganization(server)
  const { project } = organization
  const admin = await newMember(server, organization, 'admin')
  const path = `/api/projects/${project.id}`
  const created = await admin.post(`${path}/webhooks`, { url: receiver.url })
  const { id, secret } = created.body.data
  const key = await createKey(server.sql, { projectId: project.uuid, name: 'test' })
  const { post } = createRequests(server.url, key.token)

  const event = (await post('/v1/events', { channelName: 'payments', title: 'New payment' })).body
    .data
  await until(() => receiver.received.length > 0)
  const { body, headers } = receiver.received[0]!
  expect(new Webhook(secret).verify(body, headers)).toEqual({
    type: 'event.created',
    timestamp: event.timestamp,
    data: {
      ...event,
      project: { id: project.id, name: 'Test project' },
      organization: { id: organization.id, name: 'Test organization' },
    },
  })

  const record = async () =>
    (await admin.get(`${path}/events/${event.id}/deliveries`)).body.data.items.find(
      ({ kind }: { kind: string }) => kind === 'webhook',
    )
  await until(async () => (await record())?.state === 'delivered')
  expect(await record()).toMatchObject({ target: { id }, attempts: 1 })

  // Nothing more arrives until it is sent again: then the same message.
  const [attempt] = (await admin.get(`${path}/webhooks/${id}/attempts`)).body.data.items
  await admin.post(`${path}/webhooks/${id}/attempts/${attempt.id}/resend`)
  await until(() => receiver.received.length > 1)
  expect(receiver.received[1]?.headers['webhook-id']).toBe(headers['webhook-id']!)
})

test('delivery.md an event that matches no webhook says so; without webhooks it says nothing', async () => {
  const tenant = await newTenant(server)
  const silence = async ({ id }: { id: string }) => {
    const read = async () =>
      (await tenant.person.get(`${tenant.path}/events/${id}/deliveries`)).body.data
    await until(async () => (await read()).isDispatched)
    const { items } = await read()
    return items.find(({ kind }: { kind: string }) => kind === 'webhook')
  }
  const first = await tenant.send({ channelName: 'payments' })
  expect(await silence(first)).toBeUndefined()
  const created = await tenant.person.post(`${tenant.path}/webhooks`, {
    url: 'https://hooks.example.com/',
    channels: [first.channelId],
  })
  expect(created.status).toBe(201)
  expect(await silence(await tenant.send({ channelName: 'ops' }))).toMatchObject({
    state: 'withheld',
    target: null,
    reason: NO_MATCHING_WEBHOOK,
  })
})

test('an attempt reads its own event alone, also with a plan from when the table was small', async () => {
  await using receiver = await startReceiver()
  await using fresh = await boot({ egressAllowCidrs: ['127.0.0.0/8'] })
  const organization = await newOrganization(fresh)
  const { project } = organization
  const admin = await newMember(fresh, organization, 'admin')
  const webhooks = 4
  for (let nth = 1; nth <= webhooks; nth++) {
    await admin.post(`/api/projects/${project.id}/webhooks`, { url: receiver.url })
  }
  for (const events of [250, 1_000]) {
    await appendEvents(fresh.sql, project.uuid, events)
    await until(() => receiver.received.length >= webhooks * events)
    receiver.received.length = 0
  }
  // Connections flush their statistics when they end.
  await fresh.server.stop()
  const [{ read }] = await fresh.sql<[{ read: number }]>`
    select (seq_tup_read + idx_tup_fetch)::int as read from pg_stat_user_tables where relname = 'events'
  `
  // A few rows per delivery, plus whole scans at first: for so short a log a scan is as fast.
  expect(read).toBeLessThan(1_000_000)
})

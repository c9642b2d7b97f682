import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { NO_MATCHING_WEBHOOK } from '../../../src/delivery/webhooks/dispatch.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { appendEvents } from '../../support/worlds/deliveries.ts'
import { createKey } from '../../support/worlds/keys.ts'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

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

describe('contract §12 a webhook of the audit log', () => {
  /** Creates an organization with a webhook of each type. */
  async function newAuditWebhook(url: string) {
    const organization = await newOrganization(server)
    const owner = await newMember(server, organization, 'owner')
    const project = `/api/projects/${organization.project.id}`
    const create = async (more: object) =>
      (await owner.post(`${project}/webhooks`, { url, ...more })).body.data
    await create({ name: 'events only' })
    const { id, secret } = await create({ type: 'audit.entry' })
    return { organization, owner, id, secret, project, hook: `${project}/webhooks/${id}` }
  }

  const untilSettled = ({ project }: TestOrganization) =>
    until(async () => {
      const rows = await server.sql`select from outbox where project_id = ${project.uuid}`
      return rows.length === 0
    })

  const rename = (owner: SignedInAccount, { id }: TestOrganization, name: string) =>
    owner.patch(`/api/organizations/${id}`, { name })

  test('gets every entry of its organization, signed, and can be sent again', async () => {
    await using receiver = await startReceiver()
    const { organization, owner, id, secret, project, hook } = await newAuditWebhook(receiver.url)
    const other = await newOrganization(server)
    await rename(await newMember(server, other, 'owner'), other, 'Theirs')
    await rename(owner, organization, 'Renamed')
    // The creation of the webhook is an entry, too.
    await until(() => receiver.received.length === 2)
    const messages = receiver.received.map(({ body, headers }) =>
      new Webhook(secret).verify(body, headers),
    )
    const { items } = (await owner.get(`/api/organizations/${organization.id}/audit`)).body.data
    const data = (entry: object) => ({
      ...entry,
      organization: { id: organization.id, name: 'Renamed' },
    })
    expect(messages.find(({ data }: any) => data.action === 'organization.renamed')).toEqual({
      type: 'audit.entry',
      timestamp: items[0].at,
      data: data(items[0]),
    })
    expect(messages.map(({ data }: any) => data.action).sort()).toEqual([
      'organization.renamed',
      'webhook.created',
    ])

    const list = async () => (await owner.get(`${hook}/attempts`)).body.data.items
    await until(async () => (await list()).length === 2)
    const [attempt] = (await list()).filter((one: any) => one.entryId === items[0].id)
    expect(attempt).toMatchObject({ kind: 'audit.entry', eventId: null, outcome: 'delivered' })
    const { request } = (await owner.get(`${hook}/attempts/${attempt.id}`)).body.data
    expect([request.note, JSON.parse(request.body).data]).toEqual([null, data(items[0])])
    const listRenamed = () =>
      receiver.received.filter(({ body }) => body.includes('"organization.renamed"'))
    // One in flight is not sent again.
    await untilSettled(organization)
    await owner.post(`${hook}/attempts/${attempt.id}/resend`)
    await until(() => receiver.received.some(({ body }) => body.includes('webhook.resent')))
    await until(() => listRenamed().length === 2)
    expect(listRenamed().map(({ headers }) => headers['webhook-id'])).toEqual([
      request.headers['webhook-id'],
      request.headers['webhook-id'],
    ])
    const refused = await owner.delete(project)
    expectFailure(refused, 409, 'conflict')
    expect([refused.body.error, id]).toEqual([
      expect.stringContaining('audit log'),
      expect.any(String),
    ])
  })

  test('gets nothing for an action that failed, and recovers what it missed while disabled', async () => {
    await using receiver = await startReceiver()
    const { organization, owner, hook } = await newAuditWebhook(receiver.url)
    await until(() => receiver.received.length === 1)
    // A delivery is recorded shortly after the receiver has it.
    await untilSettled(organization)
    await owner.post(`${hook}/disable`)
    await rename(owner, organization, 'Missed')
    await owner.delete(`/api/organizations/${organization.id}/membership`)
    await owner.post(`${hook}/enable`)
    await until(() => receiver.received.some(({ body }) => body.includes('"webhook.enabled"')))
    expect(receiver.received.some(({ body }) => body.includes('"organization.renamed"'))).toBe(
      false,
    )
    await untilSettled(organization)
    const since = new Date(Date.now() - 60_000).toISOString()
    const recovered = await owner.post(`${hook}/recover`, { since })
    // The creation of the other webhook, the disabling, and the new name.
    expect(recovered.body.data).toEqual({ events: 3, nextCursor: null })
    await until(() => receiver.received.some(({ body }) => body.includes('"organization.renamed"')))
    expect(receiver.received.some(({ body }) => body.includes('member.left'))).toBe(false)
  })

  test('causes no further message when the server disables it; a given up entry is replayed', async () => {
    await using receiver = await startReceiver({ reply: { status: 410 } })
    const { organization, owner, project, hook } = await newAuditWebhook(receiver.url)
    await until(async () => !(await owner.get(hook)).body.data.isEnabled)
    const isIdle = async () => {
      const rows = await server.sql`
        select from outbox where project_id = ${organization.project.uuid} and token is not null
      `
      return rows.length === 0
    }
    await until(isIdle)
    // The entry that says so is sent to nobody.
    expect(receiver.received.map(({ body }) => JSON.parse(body).data.action)).toEqual([
      'webhook.created',
    ])
    const dead = (await owner.get(`${project}/deliveries?state=dead`)).body.data.items
    expect(dead).toMatchObject([
      { eventId: null, entryId: expect.stringMatching(/^aud_/), state: 'dead' },
    ])
    receiver.script('/', { status: 200 })
    await owner.post(`${hook}/enable`)
    const replayed = await owner.post(`${project}/deliveries/${dead[0].id}/replay`)
    expect([replayed.status, replayed.body.data.entryId]).toEqual([200, dead[0].entryId])
    const isDone = ({ body }: { body: string }) => body.includes('"webhook.created"')
    await until(() => receiver.received.filter(isDone).length === 2)
  })

  test('has a form for each service, and no channels', async () => {
    await using receiver = await startReceiver()
    const { organization, owner, hook, project } = await newAuditWebhook(receiver.url)
    await owner.patch(hook, { preset: 'slack' })
    await rename(owner, organization, 'Acme')
    const text = 'Test person renamed the organization to Acme'
    await until(() => receiver.received.some(({ body }) => JSON.parse(body).text === text))
    const made = { url: receiver.url, type: 'audit.entry', channels: ['chn_1'] }
    expectIssues(await owner.post(`${project}/webhooks`, made), 'channels invalid_value')
    expectIssues(await owner.patch(hook, { channels: ['chn_1'] }), 'channels invalid_value')
  })
})

test('delivery.md an event that matches no webhook says so; without webhooks it says nothing', async () => {
  const tenant = await newTenant(server)
  const silence = async ({ id }: { id: string }) => {
    const read = async () =>
      (await tenant.account.get(`${tenant.path}/events/${id}/deliveries`)).body.data
    await until(async () => (await read()).isDispatched)
    const { items } = await read()
    return items.find(({ kind }: { kind: string }) => kind === 'webhook')
  }
  const first = await tenant.send({ channelName: 'payments' })
  expect(await silence(first)).toBeUndefined()
  const created = await tenant.account.post(`${tenant.path}/webhooks`, {
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

import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { parseId } from '../../../src/base/ids.ts'
import { MIGRATIONS } from '../../../src/database/sql-files.ts'
import { AUDIT_WEBHOOKS_REMOVED } from '../../../src/delivery/webhooks/webhook-schema.ts'
import { NO_MATCHING_WEBHOOK } from '../../../src/delivery/webhooks/dispatch.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { forProcess } from '../../support/for-file.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

const world = forProcess(openPushWorld)

test('delivery.md an event that is answered 201 reaches the webhook, signed, and its record says so', async () => {
  await using receiver = await startReceiver()
  const organization = await newOrganization(world.server)
  const { project } = organization
  const admin = await newMember(world.server, organization, 'admin')
  const path = `/api/projects/${project.id}`
  const created = await admin.post(`${path}/webhooks`, { url: receiver.url })
  const { id, secret } = created.body.data
  const key = await createKey(world.server.sql, { projectId: project.uuid, name: 'test' })
  const { post } = createRequests(world.server.url, key.token)

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

  const viewer = await newMember(world.server, organization, 'viewer')
  const read = async () => (await viewer.get(`${path}/events/${event.id}/deliveries`)).body.data
  const isWebhook = ({ kind }: { kind: string }) => kind === 'webhook'
  await until(async () => (await read()).items.find(isWebhook)?.state === 'delivered')
  const { items, ...page } = await read()
  expect(page).toEqual({ nextCursor: null, isDispatched: true })
  expect(items.find(isWebhook)).toMatchObject({
    ...{ eventId: event.id, target: { id, name: expect.stringContaining('127.0.0.1') } },
    ...{ state: 'delivered', attempts: 1, reason: null, nextAttemptAt: null },
  })

  // Nothing more arrives until it is sent again: then the same message.
  const [attempt] = (await admin.get(`${path}/webhooks/${id}/attempts`)).body.data.items
  await admin.post(`${path}/webhooks/${id}/attempts/${attempt.id}/resend`)
  await until(() => receiver.received.length > 1)
  expect(receiver.received[1]?.headers['webhook-id']).toBe(headers['webhook-id']!)
})

test('attention §4 an acknowledgement is told once to the webhooks that its event went to', async () => {
  await using receiver = await startReceiver()
  const { account, path, send } = await newTenant(world.server)
  const create = async (name: string, more: object) => {
    const input = { url: `${receiver.url}/${name}`, ...more }
    return (await account.post(`${path}/webhooks`, input)).body.data
  }
  const standard = await create('standard', {})
  await create('slack', { preset: 'slack' })
  await create('own', { body: '{"text":"{{title}}","by":"{{acknowledged.by}}"}' })
  await create('other', { channels: [(await send({ channelName: 'other' })).channelId] })
  const event = await send({ title: 'Disk full', thread: 'disk', state: 'firing' })
  const list = () => receiver.received.filter(({ body }) => body.includes('Disk full'))
  await until(() => list().length >= 3)

  const acknowledge = () =>
    account.post(`${path}/events/${event.id}/acknowledgement`, { minutes: 60 })
  const { data: acknowledged } = (await acknowledge()).body
  await acknowledge()
  await until(() => list().length >= 6)
  const told = Object.fromEntries(
    list()
      .slice(3)
      .map(one => [one.path, one]),
  )
  expect(Object.keys(told).sort()).toEqual(['/own', '/slack', '/standard'])
  const { body, headers } = told['/standard']!
  const first = list().find(one => one.path === '/standard')!
  expect(new Webhook(standard.secret).verify(body, headers)).toEqual({
    type: 'event.acknowledged',
    timestamp: acknowledged.at,
    data: { ...JSON.parse(first.body).data, acknowledged },
  })
  const title = `Acknowledged by ${acknowledged.by}: Disk full`
  expect(JSON.parse(told['/slack']!.body).text).toBe(title)
  expect(JSON.parse(told['/own']!.body)).toEqual({ text: title, by: acknowledged.by })

  // Its attempt has the request, and cannot be sent again as the event.
  const attempts = `${path}/webhooks/${standard.id}/attempts`
  const listAttempts = async () => (await account.get(attempts)).body.data.items
  await until(async () => (await listAttempts()).length === 3)
  const [attempt] = await listAttempts()
  expect(attempt).toMatchObject({ kind: 'event.acknowledged', eventId: event.id, number: 1 })
  const { request } = (await account.get(`${attempts}/${attempt.id}`)).body.data
  expect([request.body, request.headers['webhook-id'], request.note]).toEqual([
    ...[body, headers['webhook-id'], null],
  ])
  expectFailure(await account.post(`${attempts}/${attempt.id}/resend`), 409, 'conflict')

  // Also if the event is not dispatched yet.
  await world.server.sql.begin(async tx => {
    await tx`select from delivery_cursors where kind = 'webhook' for update`
    const { id } = await send({ title: 'Late', level: 'critical' })
    expect((await account.post(`${path}/events/${id}/acknowledgement`, {})).status).toBe(200)
  })
  const late = () => receiver.received.filter(one => one.body.includes('Late'))
  await until(() => late().length >= 6)
  expect(new Set(late().map(one => one.path))).toEqual(new Set(['/own', '/slack', '/standard']))
})

test('delivery.md a webhook with a view gets what the view finds, also where nobody has a device', async () => {
  await using receiver = await startReceiver()
  const { account, path, send } = await newTenant(world.server)
  const view = { name: 'VIPs', q: 'tag:vip', isShared: true }
  const { id: viewId } = (await account.post(`${path}/views`, view)).body.data
  await account.post(`${path}/webhooks`, { url: receiver.url, viewId })
  const other = await send()
  const vip = await send({ tags: ['vip'] })
  await until(() => receiver.received.length > 0)
  expect(receiver.received.map(({ body }) => JSON.parse(body).data.id)).toEqual([vip.id])
  const shown = async () => (await account.get(`${path}/events/${other.id}/deliveries`)).body.data
  expect((await shown()).items).toContainEqual(
    expect.objectContaining({ kind: 'webhook', reason: NO_MATCHING_WEBHOOK }),
  )
})

test('a webhook of the audit log, from before 0.4.0, is disabled at the upgrade and shows why', async () => {
  const organization = await newOrganization(world.server)
  const { project } = organization
  const owner = await newMember(world.server, organization, 'owner')
  const path = `/api/projects/${project.id}/webhooks`
  const url = 'https://93.184.216.34/hook'
  expectIssues(await owner.post(path, { url, type: 'audit.entry' }), 'type invalid_value')
  const { id } = (await owner.post(path, { url, type: 'event.created' })).body.data
  const targetId = parseId('whk', id) ?? ''
  await world.server.sql`update webhooks set type = 'audit.entry' where id = ${targetId}`
  const upgrade = MIGRATIONS.find(({ name }) => name === '0040_audit_webhooks')?.text ?? ''
  await world.server.sql.unsafe(upgrade)
  expect((await owner.get(`${path}/${id}`)).body.data).toMatchObject({
    isEnabled: false,
    disabledReason: AUDIT_WEBHOOKS_REMOVED,
  })
  const refused = await owner.post(`${path}/${id}/enable`)
  expectFailure(refused, 409, 'conflict')
  expect(refused.body.error).toBe(AUDIT_WEBHOOKS_REMOVED)
  expect((await owner.delete(`/api/projects/${project.id}`)).status).toBe(200)
})

test('delivery.md an event that matches no webhook says so; without webhooks it says nothing', async () => {
  const tenant = await newTenant(world.server)
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

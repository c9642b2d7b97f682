import { expect, test } from 'bun:test'
import { type Received } from '../../support/servers/receiver.ts'
import { bootForWebhooks, type TestWebhook } from '../../support/worlds/webhooks.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(bootForWebhooks)

/** Returns a webhook with its own address, and the requests that arrive there. */
async function newWebhook(options: object = {}) {
  const path = `/${crypto.randomUUID()}`
  const webhook = await world.webhooks.create(`${world.receiver.url}${path}?token=hush`, options)
  return {
    webhook,
    received: () => world.receiver.received.filter(one => one.path.startsWith(path)),
  }
}

/** Returns the request of a webhook's newest attempt, as admins see it. */
async function readRequest(webhook: TestWebhook) {
  const [attempt] = await webhook.attempts()
  const { status, body } = await webhook.admin.get(`${webhook.path}/attempts/${attempt!['id']}`)
  expect(status).toBe(200)
  expect(body.data).toMatchObject(attempt!)
  return body.data.request
}

/** Returns the request as it must be shown: without the signature and common headers. */
function toShown({ method, headers, body }: Received) {
  const names = ['host', 'content-type', 'webhook-id', 'webhook-timestamp']
  return {
    method,
    headers: Object.fromEntries(names.map(name => [name, headers[name]])),
    body,
    note: null,
  }
}

test('dashboard: an attempt shows its request as it arrived, without the signature, and so does a test', async () => {
  const { webhook, received } = await newWebhook()
  const event = { channelName: 'ops', title: 'Backup "failed" 💾', description: 'é\n', tags: ['a'] }
  await webhook.send(await webhook.newEvent(event))
  expect(await readRequest(webhook)).toEqual(toShown(received()[0]!))
  await webhook.admin.post(`${webhook.path}/test`)
  expect(await readRequest(webhook)).toEqual(toShown(received()[1]!))
})

test('dashboard: a request is shown in the format in which it was sent, also after a change of the preset', async () => {
  const { webhook, received } = await newWebhook({ preset: 'slack' })
  await webhook.send(await webhook.newEvent())
  await webhook.admin.patch(webhook.path, { preset: 'discord' })
  expect(await readRequest(webhook)).toEqual(toShown(received()[0]!))
})

test('dashboard: a request whose body can no longer be rebuilt exactly says so', async () => {
  const { webhook, received } = await newWebhook()
  await webhook.send(await webhook.newEvent())
  await world.server.sql`
    update projects set name = 'Renamed' where id = ${webhook.organization.project.uuid}
  `
  const request = await readRequest(webhook)
  expect(request.note).toContain('as it would be sent today')
  expect(JSON.parse(request.body).data.project.name).toBe('Renamed')
  expect(JSON.parse(received()[0]!.body).data.project.name).not.toBe('Renamed')
})

test('dashboard: the request of a deleted event has no body, and says so', async () => {
  const { webhook, received } = await newWebhook()
  const event = await webhook.newEvent()
  await webhook.send(event)
  const path = `/api/projects/${webhook.organization.project.id}/events/${event}`
  expect((await webhook.admin.delete(path)).status).toBe(200)
  expect(await readRequest(webhook)).toEqual({
    ...toShown(received()[0]!),
    body: null,
    note: 'The event was deleted, so its body cannot be rebuilt',
  })
})

test('delivery: an attempt stores no part of the endpoint but its host', async () => {
  const { webhook } = await newWebhook()
  await webhook.send(await webhook.newEvent())
  const [row] = await world.server.sql<[{ text: string }]>`
    select string_agg(a::text, ' ') as text from webhook_attempts a where webhook_id = ${webhook.uuid}
  `
  expect(row.text).toContain('127.0.0.1')
  expect(row.text).not.toContain('hush')
})

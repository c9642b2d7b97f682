import { expect, test } from 'bun:test'
import { Webhook as Svix } from 'svix'
import { Webhook } from 'standardwebhooks'
import { createPool } from '../../../src/database/pool.ts'
import { forProcess } from '../../support/for-file.ts'
import { startReceiver, type Received } from '../../support/servers/receiver.ts'
import { until } from '../../support/until.ts'
import { bootForWebhooks, createRecordingSender } from '../../support/worlds/webhooks.ts'

const world = forProcess(bootForWebhooks)

/** Returns true if both libraries verify the request. */
function isGenuine({ body, headers }: Received, secret: string): boolean {
  return [new Webhook(secret), new Svix(secret)].every(library => {
    try {
      library.verify(body, headers)
      return true
    } catch {
      return false
    }
  })
}

test('contract §2 numbers in metadata reach a webhook as they were written', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(`${receiver.url}/hook?a=b`)
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }
  const metadata = { price: rawJSON('1.10'), id: rawJSON('12345678901234567890') }
  const sent = await webhook.post({ channelName: 'payments', title: 'New payment', metadata })
  await webhook.send(sent.body.data.id)
  const [request] = receiver.received
  expect(request).toMatchObject({ method: 'POST', path: '/hook?a=b' })
  expect(request?.headers['content-type']).toBe('application/json')
  expect(request?.body).toContain('"metadata":{"price":1.10,"id":12345678901234567890}')
})

test('delivery: batched attempts each use their own webhook and event, and fail alone', async () => {
  await using receiver = await startReceiver()
  const names = ['a', 'b', 'c', 'broken']
  const all = await Promise.all(names.map(name => world.webhooks.create(`${receiver.url}/${name}`)))
  const broken = all.at(-1)!
  await world.server.sql`update webhooks set secret = 'unreadable' where id = ${broken.uuid}`
  const sent = await Promise.all(
    [...all, ...all].map(async (webhook, nth) => ({
      webhook,
      event: await webhook.newEvent({ channelName: 'c', title: `${nth}` }),
      title: `${nth}`,
    })),
  )
  const told = await Promise.allSettled(sent.map(({ webhook, event }) => webhook.send(event)))
  expect(told.map(({ status }) => status)).toEqual(
    sent.map(({ webhook }) => (webhook === broken ? 'rejected' : 'fulfilled')),
  )
  const good = sent.filter(({ webhook }) => webhook !== broken)
  expect(receiver.received).toHaveLength(good.length)
  for (const { webhook, event, title } of good) {
    const id = `msg_${event.slice(4)}_${webhook.id.slice(4)}`
    const request = receiver.received.find(({ headers }) => headers['webhook-id'] === id)!
    expect(request.path).toBe(`/${names[all.indexOf(webhook)]}`)
    expect(JSON.parse(request.body).data).toMatchObject({ id: event, title })
    expect(isGenuine(request, webhook.secret)).toBe(true)
    expect(await webhook.attempts()).toContainEqual(
      expect.objectContaining({ eventId: event, number: 1, outcome: 'delivered' }),
    )
  }
  expect(await broken.attempts()).toEqual([])
})

test('delivery: an attempt that waits for a locked webhook delays no other', async () => {
  await using receiver = await startReceiver()
  const [locked, free] = [
    await world.webhooks.create(receiver.url),
    await world.webhooks.create(receiver.url),
  ]
  const [event, elsewhere] = [await locked.newEvent(), await free.newEvent()]
  // Waits for the lock as long as it is held.
  const settings = { lock_timeout: 0, statement_timeout: 0 }
  const pool = createPool(world.server.databaseUrl, {
    name: 'test patient',
    max: 4,
    deadlineMs: 60_000,
    settings,
  })
  const send = createRecordingSender({ ...world.webhooks.parts, pool })
  const { held } = await world.server.sql.begin(async tx => {
    await tx`select from webhooks where id = ${locked.uuid} for update`
    const waiting = send(locked.toAttempt(event))
    expect(await send(free.toAttempt(elsewhere))).toEqual({ kind: 'done' })
    expect(await free.attempts()).toHaveLength(1)
    return { held: waiting }
  })
  expect(await held).toEqual({ kind: 'done' })
  expect(await locked.attempts()).toHaveLength(1)
  await pool.end()
})

test('delivery: an attempt records status, latency and the first 1 KiB of the answer', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  receiver.script(
    '/',
    { status: 503, body: `a\u0000${'€'.repeat(2000)}` },
    { status: 204 },
    'reset',
  )
  const event = await webhook.newEvent()
  expect(await webhook.send(event, 1)).toEqual({
    kind: 'retry',
    reason: 'The receiver answered 503',
  })
  await webhook.send(event, 2)
  await webhook.send(event, 3)
  const [third, second, first] = await webhook.attempts()
  expect(first).toMatchObject({
    kind: 'event.created',
    eventId: event,
    eventTitle: 'New payment',
    number: 1,
    outcome: 'failed',
    status: 503,
    error: null,
    response: `a\ufffd${'€'.repeat(340)}`,
    latencyMs: expect.any(Number),
  })
  expect(second).toMatchObject({ number: 2, outcome: 'delivered', status: 204, response: '' })
  expect(third).toMatchObject({ number: 3, outcome: 'failed', status: null, error: 'reset' })
})

test('delivery: a 2xx status line is a success, even if the body fails', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  for (const reply of ['cut', 'bomb', 'flood'] as const) {
    receiver.script('/', reply)
    expect(await webhook.send(await webhook.newEvent())).toEqual({ kind: 'done' })
  }
})

test.each([
  ['drip', 'done'],
  ['drip 500', 'retry'],
] as const)('delivery: a body that never ends holds no attempt: %s', async (reply, kind) => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(`${receiver.url}/slow`)
  const silent = await world.webhooks.create(`${receiver.url}/silent`)
  receiver.script('/slow', reply)
  receiver.script('/silent', 'hang')
  const stop = new AbortController()
  const event = await silent.newEvent()
  const hanging = silent.send(event, 1, { signal: stop.signal })
  await receiver.until(1, '/silent')
  const dripping = webhook.send(await webhook.newEvent())
  expect(await Promise.race([dripping, hanging])).toMatchObject({ kind })
  stop.abort()
  expect(await hanging).toMatchObject({ kind: 'postponed' })
  expect((await webhook.attempts())[0]!['response']).toMatch(/^\.+$/)
  await until(() => receiver.open === 0)
})

test('delivery: nothing is sent for deleted webhooks or unknown events', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  const event = await webhook.newEvent()
  expect(await webhook.send('evt_01kadz5p6vf2w8y3m4n5q6r7s8')).toMatchObject({ kind: 'postponed' })
  await webhook.admin.delete(webhook.path)
  expect(await webhook.send(event)).toMatchObject({ kind: 'cancelled' })
  expect(receiver.connections).toBe(0)
})

test('delivery: a preset formats the body, and the signature verifies', async () => {
  await using receiver = await startReceiver()
  const url = `${receiver.url}/base/my-topic?auth=x`
  const webhook = await world.webhooks.create(url, { preset: 'ntfy' })
  const payment = { channelName: 'payments', title: 'New <payment>', icon: '💰' }
  const event = { ...payment, level: 'high', url: 'https://a.test/' }
  expect(await webhook.send(await webhook.newEvent(event))).toEqual({ kind: 'done' })
  const request = receiver.received[0]!
  expect(request.path).toBe('/base/?auth=x')
  expect(JSON.parse(request.body)).toMatchObject({
    ...{ topic: 'my-topic', title: '💰 New <payment>', priority: 4, click: 'https://a.test/' },
  })
  expect(isGenuine(request, webhook.secret)).toBe(true)
})

test.each([
  ['standard', '/hook', { at: 'now' }],
  ['slack', '/services/x', {}],
  ['discord', '/api/webhooks/x', { allowed_mentions: { parse: [] } }],
  ['telegram', '/bot1/sendMessage?chat_id=-5', { chat_id: '-5' }],
  ['ntfy', '/my-topic', { topic: 'my-topic' }],
] as const)(
  'delivery: with %s, an own body is sent as its preview shows it, with the own headers',
  async (preset, path, kept) => {
    await using receiver = await startReceiver()
    const fields = {
      url: `${receiver.url}${path}`,
      preset,
      body: '{"at":"now","text":"{{title}} of {{project.name}}","plan":"{{metadata.plan}}","topic":"x","chat_id":1,"allowed_mentions":{"parse":["everyone"]}}',
      headers: { Authorization: 'Bearer s3cret', 'X-Team': 'ops' },
    }
    const webhook = await world.webhooks.create(fields.url, fields)
    const event = await webhook.newEvent({
      channelName: 'payments',
      title: '"},{"a":"\\',
      metadata: { plan: 1.1 },
    })
    const all = webhook.path.slice(0, webhook.path.lastIndexOf('/'))
    const preview = await webhook.admin.post(`${all}/preview`, fields)
    expect(preview.status).toBe(200)
    expect(preview.text).not.toContain('s3cret')
    expect(await webhook.send(event)).toEqual({ kind: 'done' })
    const request = receiver.received[0]!
    const { url, headers, items } = preview.body.data
    expect(items).toEqual([{ eventId: event, body: request.body }])
    expect(url).toBe(`${receiver.url}${request.path}`)
    expect(Object.keys(headers)).toEqual(['Authorization', 'X-Team', 'Content-Type'])
    expect(JSON.parse(request.body)).toMatchObject({
      text: '"},{"a":"\\ of Test project',
      plan: 1.1,
      ...kept,
    })
    expect(request.headers).toMatchObject({
      authorization: 'Bearer s3cret',
      'x-team': 'ops',
      'content-type': 'application/json',
    })
    expect(isGenuine(request, webhook.secret)).toBe(true)
    const [attempt] = await webhook.attempts()
    const detail = await webhook.admin.get(`${webhook.path}/attempts/${attempt!['id']}`)
    expect(detail.body.data.request).toMatchObject({ body: request.body, note: null })
    // A test shows the receiver the same shape.
    await webhook.admin.post(`${webhook.path}/test`)
    expect(JSON.parse(receiver.received[1]!.body)).toMatchObject({
      text: 'Test from Tidings of Test project',
      plan: null,
      ...kept,
    })
  },
)

test('delivery: a view of a webhook is shared, stays, and its preview shows what it finds', async () => {
  await using receiver = await startReceiver()
  const webhook = await world.webhooks.create(receiver.url)
  const views = `/api/projects/${webhook.organization.project.id}/views`
  const view = await webhook.admin.post(views, { name: 'VIPs', q: 'tag:vip', isShared: true })
  const { id: viewId } = view.body.data
  const own = await webhook.admin.post(views, { name: 'Mine', q: 'tag:vip' })
  const refused = await webhook.admin.patch(webhook.path, { viewId: own.body.data.id })
  expect(refused.body.details[0]).toMatchObject({ path: ['viewId'] })
  expect((await webhook.admin.patch(webhook.path, { viewId })).body.data).toMatchObject({ viewId })

  const vip = await webhook.newEvent({ channelName: 'payments', title: 'Big', tags: ['vip'] })
  await webhook.newEvent({ channelName: 'payments', title: 'Small' })
  const all = webhook.path.slice(0, webhook.path.lastIndexOf('/'))
  const preview = async (channels: string[] | null) => {
    const { body } = await webhook.admin.post(`${all}/preview`, {
      ...{ url: receiver.url, viewId, channels },
    })
    return body.data.items.map((item: { eventId: string }) => item.eventId)
  }
  expect(await preview(null)).toEqual([vip])
  expect(await preview(['chn_01kadz5p6vf2w8y3m4n5q6r7s8'])).toEqual([])

  for (const { status, text } of [
    await webhook.admin.delete(`${views}/${viewId}`),
    await webhook.admin.patch(`${views}/${viewId}`, { isShared: false }),
  ]) {
    expect([status, text]).toEqual([409, expect.stringContaining('Choose another one there')])
  }
  await webhook.admin.patch(webhook.path, { viewId: null })
  expect((await webhook.admin.delete(`${views}/${viewId}`)).status).toBe(200)
})

test('delivery: a body that an event makes too large is given up with its reason', async () => {
  await using receiver = await startReceiver()
  const body = `["${'{{metadata}}'.repeat(20)}"]`
  const webhook = await world.webhooks.create(receiver.url, { body })
  const metadata = { text: 'x'.repeat(60_000) }
  const event = await webhook.newEvent({ channelName: 'payments', title: 'Large', metadata })
  expect(await webhook.send(event)).toEqual({
    kind: 'gone',
    reason: 'The event fills the body with over 1 MiB',
  })
  const all = webhook.path.slice(0, webhook.path.lastIndexOf('/'))
  const preview = await webhook.admin.post(`${all}/preview`, { url: receiver.url, body })
  expect([preview.status, preview.text]).toEqual([413, expect.stringContaining('over 1 MiB')])
})

test('delivery: servers of 0.3.0 leave the webhooks that they do not understand', async () => {
  const plain = await world.webhooks.create(world.receiver.url)
  const own = await world.webhooks.create(world.receiver.url, { headers: { 'X-Team': 'ops' } })
  const read = async ({ organization, uuid }: typeof own) => {
    const [row] = await world.server.sql<[{ webhook: { disabledAtMs: number | null } }]>`
      select webhook
      from read_webhook_deliveries(array[${organization.project.uuid}]::uuid[], array[${uuid}]::uuid[], '{}', false, 1, 1)
    `
    return row.webhook.disabledAtMs
  }
  expect(await read(plain)).toBeNull()
  expect(await read(own)).toBeNumber()
})

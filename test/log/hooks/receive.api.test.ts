import { createHmac, randomBytes } from 'node:crypto'
import { Webhooks } from '@octokit/webhooks'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { expect, test } from 'bun:test'
import { lockLog } from '../../support/database-lock.ts'
import { until } from '../../support/until.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { sendRequest, type RequestOptions } from '../../support/worlds/project.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import alertmanager from './bodies/alertmanager.json' with { type: 'json' }
import github from './bodies/github.json' with { type: 'json' }
import stripe from './bodies/stripe.json' with { type: 'json' }

const server = withSharedServer()

/** A tenant with a hook. */
async function openHook(more: object = {}) {
  const tenant = await newTenant(server)
  const { account, path } = tenant
  const made = await account.post(`${path}/hooks`, {
    ...{ name: 'Shop', preset: 'generic', channel: 'ops' },
    ...more,
  })
  expect([made.status, made.text]).toEqual([201, made.text])
  const { url, ...hook } = made.body.data
  const at = `${path}/hooks/${hook.id}`
  return {
    ...tenant,
    ...{ hook, url: url as string, at },
    send: (options: RequestOptions = {}, to: string = url) =>
      sendRequest(to, {}, { method: 'POST', ...options }),
    requests: async () => (await account.get(`${at}/requests`)).body.data.items,
    events: async () => (await tenant.v1.get('/v1/events?threads=all')).body.data.items,
    get: async () =>
      (await account.get(`${path}/hooks`)).body.data.items.find(
        ({ id }: { id: string }) => id === hook.id,
      ),
  }
}

test('a request becomes an event, and is shown with what became of it', async () => {
  const { send, events, requests, get, hook } = await openHook()
  const headers = {
    ...{ authorization: 'Bearer secret', 'x-gitlab-token': 'secret', 'x-own': 'shown' },
    ...{ 'x-password': 'secret', 'x-jwt': 'secret', 'idempotency-key': 'shown' },
    'x-forwarded-for': '192.0.2.1',
    'x-real-ip': '192.0.2.1',
    'cf-connecting-ip': '192.0.2.1',
    forwarded: 'for=192.0.2.1',
    ...{ 'x-client-ip': '192.0.2.1', 'x-cluster-client-ip': '192.0.2.1' },
    ...{ 'fly-client-ip': '192.0.2.1', 'fastly-client-ip': '192.0.2.1' },
    ...{ 'x-original-forwarded-for': '192.0.2.1', 'x-azure-clientip': '192.0.2.1' },
    ...{ 'x-envoy-external-address': '192.0.2.1', 'x-forwarded-host': 'shown.example' },
    ...{ 'x-azure-socketip': '192.0.2.1', 'x-nf-client-connection-ip': '192.0.2.1' },
    ...{ 'x-appengine-user-ip': '192.0.2.1', 'cloudfront-viewer-address': '192.0.2.1:1' },
  }
  const answer = await send({ json: { title: 'Paid', order: { id: 42 } }, headers })
  const [event] = await events()
  expect([answer.status, answer.body.data]).toEqual([200, { events: [event.id] }])
  expect(event).toMatchObject({
    ...{
      channelName: 'ops',
      title: 'Paid',
      source: 'hook',
      metadata: { title: 'Paid', order: { id: 42 } },
    },
  })
  const [request] = await requests()
  expect(request).toMatchObject({
    ...{ status: 200, outcome: 'Became 1 event', eventIds: [event.id] },
    body: '{"title":"Paid","order":{"id":42}}',
    headers: {
      ...{ authorization: '(redacted)', 'x-gitlab-token': '(redacted)', 'x-own': 'shown' },
      ...{ 'x-password': '(redacted)', 'x-jwt': '(redacted)', 'idempotency-key': 'shown' },
      'x-forwarded-host': 'shown.example',
    },
  })
  expect(JSON.stringify(request.headers)).not.toContain('192.0.2.1')
  const shown = await get()
  expect(shown).toMatchObject({ ...hook, requests: 1, refused: 0, lastRequestAt: request.at })
})

test('an address is refused when it is unknown, replaced, or off', async () => {
  const { send, account, at, url, events } = await openHook()
  expect((await send({ body: 'x' }, `${url}x`)).status).toBe(404)
  const off = await account.patch(at, { isOn: false })
  expect(off.body.data.isOn).toBe(false)
  const gone = await send({ body: 'x' })
  expect([gone.status, gone.body.error]).toEqual([
    410,
    'This inbound hook is off. An admin of the project can turn it on.',
  ])
  await account.patch(at, { isOn: true })
  const rotated = await account.post(`${at}/token`)
  expect((await send({ body: 'x' })).status).toBe(404)
  expect((await send({ body: 'x' }, rotated.body.data.url)).status).toBe(200)
  expect((await events()).length).toBe(1)
  await account.delete(at)
  expect((await send({ body: 'x' }, rotated.body.data.url)).status).toBe(404)
})

test('a hook takes 300 requests a minute, and keeps the last 20', async () => {
  const { send, requests, projectId } = await openHook()
  for (let n = 0; n < 22; n++) await send({ body: `Number ${n}` })
  const bodies = (await requests()).map(({ body }: { body: string }) => body)
  expect(bodies).toEqual(Array.from({ length: 20 }, (_, n) => `Number ${21 - n}`))
  await server.sql`
    update rate_windows set used = 300 where key_id = (select id from hooks where project_id = ${projectId})
  `
  const limited = await send({ body: 'x' })
  expect([limited.status, Number(limited.headers.get('retry-after')) > 0]).toEqual([429, true])
})

test('a body of over 1 MiB or a compressed one is refused, and one of 1 MiB is not', async () => {
  const { send, requests, get } = await openHook()
  expect((await send({ body: 'x'.repeat(1024 * 1024) })).status).toBe(200)
  expect((await send({ body: 'x'.repeat(1024 * 1024 + 1) })).status).toBe(413)
  expect((await send({ body: 'x', headers: { 'content-encoding': 'gzip' } })).status).toBe(415)
  // Neither text nor numbers that Postgres stores.
  expect((await send({ body: randomBytes(100) as Uint8Array<ArrayBuffer> })).status).toBe(200)
  expect((await send({ body: '{"a":1e99999,"b":"\\u0000\\ud800"}' })).status).toBe(200)
  const statuses = (await requests()).map(({ status }: { status: number }) => status)
  expect([statuses, (await get()).requests]).toEqual([[200, 200, 415, 413, 200], 5])
})

test('requests of GitHub, Stripe and Standard Webhooks count when their signature is right', async () => {
  const whsec = `whsec_${randomBytes(32).toString('base64')}`
  const body = JSON.stringify(stripe)
  const nowS = Math.floor(Date.now() / 1000)
  const toStripe = (secret: string, timestamp: number) =>
    new Stripe('sk_test_x').webhooks.generateTestHeaderStringAsync({
      payload: body,
      secret,
      timestamp,
    })
  const octokit = new Webhooks({ secret: 'octo' })
  const sign = (secret: string, at: number) => ({
    ...{ 'webhook-id': 'msg_1', 'webhook-timestamp': `${at}` },
    'webhook-signature': `v1,bad ${new Webhook(secret).sign('msg_1', new Date(at * 1000), body)}`,
  })
  const forged = createHmac('sha256', 'other').update(body).digest('hex')
  const other = `whsec_${randomBytes(32).toString('base64')}`
  const cases = [
    {
      ...{ preset: 'github', secret: 'octo' },
      good: { 'x-hub-signature-256': await octokit.sign(body) },
      bad: [
        {},
        { 'x-hub-signature-256': `sha256=${forged}` },
        { 'x-hub-signature-256': 'sha256=é' },
      ],
    },
    {
      ...{ preset: 'stripe', secret: whsec },
      // While a secret is replaced, Stripe signs with both.
      good: {
        'stripe-signature': (await toStripe(whsec, nowS)).replace(',v1=', `,v1=${forged},v1=`),
      },
      bad: [
        {},
        { 'stripe-signature': await toStripe(other, nowS) },
        { 'stripe-signature': await toStripe(whsec, nowS - 400) },
        { 'stripe-signature': await toStripe(whsec, nowS + 400) },
      ],
    },
    {
      ...{ preset: 'generic', secret: whsec },
      good: sign(whsec, nowS),
      bad: [
        {},
        sign(other, nowS),
        sign(whsec, nowS - 400),
        { ...sign(whsec, nowS), 'webhook-id': 'msg_2' },
      ],
    },
  ]
  for (const { preset, secret, good, bad } of cases) {
    const { send, get, requests, events, hook } = await openHook({ preset, secret })
    expect(hook.isVerified).toBe(true)
    expect((await send({ body, headers: good })).status).toBe(200)
    for (const headers of bad) {
      const refused = await send({ body, headers: headers as Record<string, string> })
      expect([preset, refused.status]).toEqual([preset, 401])
    }
    expect(await get()).toMatchObject({ requests: bad.length + 1, refused: bad.length })
    const [last] = await requests()
    expect(last).toMatchObject({ status: 401, eventIds: [] })
    expect(JSON.stringify(await requests())).not.toContain(forged)
    expect((await events()).length).toBe(1)
  }
})

test('a delivery that is repeated makes one event, and another delivery another one', async () => {
  for (const [preset, header] of [
    ['github', 'x-github-delivery'],
    ['generic', 'webhook-id'],
  ] as const) {
    const { send, events, requests } = await openHook({ preset })
    const deliver = (id: string) =>
      send({ json: github.star, headers: { 'x-github-event': 'star', [header]: id } })
    const [first, again] = await Promise.all([deliver('a'), deliver('a')])
    expect(again?.body.data).toEqual(first?.body.data)
    await deliver('b')
    expect((await events()).length).toBe(2)
    const outcomes = (await requests())
      .map(({ outcome }: { outcome: string }) => outcome)
      .toSorted()
    expect(outcomes).toEqual(['Became 1 event', 'Became 1 event', 'Changed nothing: it was known'])
  }
})

test('an alert that is sent again changes nothing, and one that fires again opens its thread', async () => {
  const { send, events } = await openHook({ preset: 'alertmanager' })
  const [alert] = alertmanager.alerts
  const tell = async (...more: object[]) =>
    send({ json: { alerts: more.map(one => ({ ...alert, ...one })) } })
  const over = { status: 'resolved', endsAt: '2026-11-20T10:00:00Z' }
  const states = async () =>
    (await events()).map(({ state }: { state: string }) => state).toReversed()
  await Promise.all([tell({}), tell({})])
  await tell({})
  expect(await states()).toEqual(['firing'])
  // A group of a mixed state.
  await tell(over, { fingerprint: 'other' })
  await tell(over, { fingerprint: 'other' })
  expect(await states()).toEqual(['firing', 'resolved', 'firing'])
  // Twice in one request.
  expect(
    (await tell({ fingerprint: 'twice' }, { fingerprint: 'twice' })).body.data.events.length,
  ).toBe(1)
  // Its program was away, so that it had only seemed to end.
  await tell({})
  expect(await states()).toEqual(['firing', 'resolved', 'firing', 'firing', 'firing'])
})

test('a run of GitHub that has ended does not run again, and a delivery counts once', async () => {
  const { send, events, v1 } = await openHook({ preset: 'github' })
  const { workflow_run: run } = github
  const deliver = (id: string, more: object) =>
    send({
      json: { ...run, ...more },
      headers: { 'x-github-event': 'workflow_run', 'x-github-delivery': id },
    })
  const running = { action: 'in_progress' }
  await Promise.all([deliver('end', {}), deliver('start', running), deliver('end', {})])
  await deliver('late', running)
  await deliver('end', {})
  const threads = await v1.get('/v1/threads')
  expect(threads.body.data.items).toEqual([])
  const found = (await events()) as { threadSeq: string; title: string }[]
  expect(new Set(found.map(({ threadSeq }) => threadSeq)).size).toBe(1)
  expect(found.filter(({ title }) => title.endsWith('failure')).length).toBe(1)
})

test('alerts that are known leave room for others, and what is left out is said once a day', async () => {
  const { send, events } = await openHook({ preset: 'alertmanager' })
  const alerts = Array.from({ length: 1_001 }, (_, n) => ({ fingerprint: `${n}` }))
  await send({ json: { alerts } })
  expect((await send({ json: { alerts } })).body.data.events.length).toBe(1)
  await send({ json: { alerts: [...alerts, ...alerts.map((_, n) => ({ fingerprint: `b${n}` }))] } })
  const [last] = (await events()) as { title: string }[]
  expect(last?.title).toBe('Alert')
})

test('a deleted event takes the request that made it along', async () => {
  const { send, requests, projectId } = await openHook()
  await send({ body: 'One' })
  await send({ body: 'Two' })
  await server.sql`update events set deleted_at = now() - interval '1 hour' where title = 'One'
    and project_id = ${projectId}`
  await server.sql`select purge_events(${projectId}, now(), 10)`
  expect((await requests()).map(({ body }: { body: string }) => body)).toEqual(['Two'])
})

test('a request that cannot be stored now gets 503, and makes one event when it is repeated', async () => {
  const { send, events, projectId, requests } = await openHook({ preset: 'github' })
  const headers = { 'x-github-event': 'star', 'x-github-delivery': 'a' }
  {
    await using _hold = await lockLog(server.sql, projectId)
    expect((await send({ json: github.star, headers })).status).toBe(503)
  }
  await until(async () => (await send({ json: github.star, headers })).status === 200)
  expect((await events()).length).toBe(1)
  const [last, ...before] = await requests()
  expect(last).toMatchObject({ status: 200, outcome: 'Became 1 event' })
  expect(before.at(-1)).toMatchObject({ status: 503, eventIds: [] })
})

test('a preview shows what the last requests would become, and stores nothing', async () => {
  const { send, account, at, events } = await openHook()
  const empty = await account.post(`${at}/preview`, { template: null })
  expect(empty.body.data).toEqual({ events: [] })
  await send({ json: { order: { id: 42 } } })
  await send({ json: { order: { id: 43 } } })
  const template = { title: 'Order {{order.id}}', level: 'critical' }
  const { body } = await account.post(`${at}/preview`, { template })
  expect(body.data.events).toMatchObject([
    { title: 'Order 43', level: 'critical' },
    { title: 'Order 42', level: 'critical' },
  ])
  expect((await events()).length).toBe(2)
  await account.patch(at, { template })
  await send({ json: { order: { id: 44 } } })
  expect((await events())[0]).toMatchObject({ title: 'Order 44', level: 'critical' })
})

test('members read hooks without their addresses and secrets, and admins edit what fits the program', async () => {
  const { account, path, at, organization, send } = await openHook()
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  expect((await account.patch(at, { secret })).body.data.isVerified).toBe(true)
  expect((await send({ body: 'x' })).status).toBe(401)
  expect((await account.patch(at, { secret: null, name: ' New ' })).body.data).toMatchObject({
    ...{ isVerified: false, name: 'New' },
  })
  const viewer = await newMember(server, organization, 'viewer')
  const listed = await viewer.get(`${path}/hooks`)
  expect(listed.text).not.toMatch(/whsec_|\/in\//)
  expect((await viewer.get(`${at}/requests`)).status).toBe(200)
  const body = { name: 'A', channel: 'ops' }
  const refused = [
    { ...body, preset: 'grafana', secret: 'x' },
    { ...body, preset: 'stripe', secret: 'sk_live_x' },
    { ...body, preset: 'github', template: { title: 'x' } },
    { ...body, preset: 'slack' },
    { ...body, preset: 'generic', template: { colour: 'x' } },
  ]
  for (const one of refused) expect((await account.post(`${path}/hooks`, one)).status).toBe(400)
  const texts = (
    await server.sql`select secret, encode(token_hash, 'escape') as hash from hooks`
  ).map(row => JSON.stringify(row))
  expect(texts.join()).not.toContain(secret)
})

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newId, parseId } from '../../../src/base/ids.ts'
import { toArray } from '../../../src/database/arrays.ts'
import type { Queryable } from '../../../src/database/sql.ts'
import { storeAttempt } from '../../../src/delivery/webhooks/recording.ts'
import { startReceiver, type Answer } from '../../support/servers/receiver.ts'
import { boot } from '../../support/servers/server.ts'
import { countSeconds, until } from '../../support/until.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { bootForWebhooks, type WebhookServer } from '../../support/worlds/webhooks.ts'

let all: WebhookServer
let server: WebhookServer['server']
let webhooks: WebhookServer['webhooks']
let receiver: WebhookServer['receiver']
beforeAll(async () => {
  all = await bootForWebhooks()
  ;({ server, webhooks, receiver } = all)
})
afterAll(() => all[Symbol.asyncDispose]())

/** Returns a webhook that limits, and an event for it. */
async function newLimited(status: number, headers: Record<string, string> = {}) {
  const name = `/${crypto.randomUUID()}`
  const webhook = await webhooks.create(`${receiver.url}${name}`)
  receiver.script(name, { status, headers })
  const count = () => receiver.received.filter(({ path }) => path === name).length
  return { webhook, name, count, event: await webhook.newEvent() }
}

test('delivery: 429 holds the webhook as long as it asks; it is neither a failure nor an attempt', async () => {
  const { webhook, event, name, count } = await newLimited(429, { 'Retry-After': '120' })
  const passed = countSeconds()
  const limited = await webhook.send(event)
  expect(limited).toMatchObject({
    kind: 'postponed',
    keepsPlace: true,
    reason: 'The receiver answered 429: it limits requests',
  })
  const afterMs = limited.kind === 'postponed' ? limited.afterMs : 0
  expect(afterMs).toBeWithin(1_000 * (120 - passed()), 120_001)
  expect(await webhook.get()).toMatchObject({
    breaker: { state: 'limited', failures: 0, failingSince: null },
  })
  // All other deliveries wait, too, in whatever process they are sent.
  const others = await Promise.all(
    Array.from({ length: 3 }, async () => webhook.send(await webhook.newEvent())),
  )
  for (const other of others) {
    expect(other).toMatchObject({ kind: 'postponed', keepsPlace: true })
  }
  expect(count()).toBe(1)
  expect(await webhook.attempts()).toMatchObject([{ status: 429, outcome: 'failed', number: 1 }])
  // A success in flight does not end the wait; the end of the wait needs no probe.
  receiver.script(name, { status: 200 })
  await server.sql.begin(tx =>
    storeAttempt(tx, {
      id: newId('att').uuid,
      projectId: webhook.organization.project.uuid,
      webhookId: webhook.uuid,
      kind: 'event.created',
      eventId: parseId('evt', event) ?? '',
      hasUser: false,
      number: 1,
      startedAt: new Date(),
      generation: 0,
      preset: 'standard',
      request: { url: receiver.url, body: '' },
      answer: { status: 200, error: null, response: '', latencyMs: 1 },
      outcome: { kind: 'delivered', reason: 'The receiver answered 200' },
    }),
  )
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'limited' } })
  await server.sql`
    update webhooks set paused_until = now() - interval '1 ms' where id = ${webhook.uuid}
  `
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed' } })
  const sent = await Promise.all([webhook.send(event), webhook.send(await webhook.newEvent())])
  expect(sent).toEqual([{ kind: 'done' }, { kind: 'done' }])
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed', pausedUntil: null } })
})

test('delivery: a successful test ends the wait that a receiver asked for', async () => {
  const { webhook, event, name } = await newLimited(429, { 'Retry-After': '86400' })
  await webhook.send(event)
  receiver.script(name, { status: 200 })
  await webhook.admin.post(`${webhook.path}/test`)
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed', pausedUntil: null } })
  expect(await webhook.send(event)).toEqual({ kind: 'done' })
})

test('delivery: 429 without Retry-After holds the webhook for longer each time', async () => {
  const { webhook, event } = await newLimited(429)
  const waits = []
  for (let n = 0; n < 3; n++) {
    const outcome = await webhook.send(event)
    waits.push(outcome.kind === 'postponed' ? Math.round(outcome.afterMs / 1_000) : 0)
    await server.sql`update webhooks set paused_until = now() where id = ${webhook.uuid}`
  }
  expect(waits).toEqual([5, 10, 20])
})

test('delivery: any other failure with Retry-After counts, and holds the webhook', async () => {
  const { webhook, event, count } = await newLimited(503, { 'Retry-After': '60' })
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry', afterMs: 60_000 })
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'limited', failures: 1 } })
  expect(await webhook.send(await webhook.newEvent())).toMatchObject({
    kind: 'postponed',
    reason: 'The receiver asked to wait',
  })
  expect(count()).toBe(1)
})

test('delivery: 429 uses up attempts of a delivery that is older than four days, and gives none up before', async () => {
  const { webhook, event, count } = await newLimited(429, { 'Retry-After': '60' })
  const late = { waitedMs: 4 * 86_400_000 + 1 }
  expect(await webhook.send(event, 10, { waitedMs: late.waitedMs - 1 })).toMatchObject({
    kind: 'postponed',
    keepsPlace: true,
  })
  expect(await webhook.send(event, 1, late)).toMatchObject({ kind: 'postponed', keepsPlace: true })
  expect(count()).toBe(1)
  await server.sql`update webhooks set paused_until = now() where id = ${webhook.uuid}`
  const passed = countSeconds()
  const limited = await webhook.send(event, 1, late)
  expect(limited).toMatchObject({
    kind: 'retry',
    reason: 'The receiver answered 429: it limits requests',
  })
  const afterMs = limited.kind === 'retry' ? limited.afterMs : 0
  expect(afterMs).toBeWithin(1_000 * (60 - passed()), 60_001)
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'limited', failures: 0 } })
})

test('delivery: events are requested in their order, whichever transaction began first', async () => {
  await using idle = await boot({}, { kinds: [] })
  const { sql } = idle
  const tenant = await newTenant(idle)
  const made = await tenant.account.post(`${tenant.path}/webhooks`, { url: 'https://example.com/' })
  expect(made.status).toBe(201)
  const dispatch = (own: Queryable) => own`
    select count from dispatch_webhooks(${toArray([tenant.projectId])}::uuid[], 500, '', null)
  `
  await sql`insert into delivery_kinds (kind, since) values ('webhook', now()) on conflict do nothing`
  await sql`insert into delivery_cursors (kind, project_id, seq) values ('webhook', ${tenant.projectId}, 0)`
  await sql.begin(async early => {
    await early`select now()`
    await tenant.send({ title: 'first' })
    await dispatch(sql)
    await tenant.send({ title: 'second' })
    await dispatch(early)
  })
  const rows = await sql<{ title: string }[]>`
    select e.title
    from outbox o
      join events e on e.project_id = o.project_id and e.id = o.event_id
    where o.project_id = ${tenant.projectId}
    order by o.requested_at
  `
  expect(rows.map(({ title }) => title)).toEqual(['first', 'second'])
})

test.each([1, 2])(
  'delivery: requests in flight at the first 429 are repeated in the order of their events, from %d servers',
  async servers => {
    await using slow = await startReceiver()
    await using idle = await boot({ egressAllowCidrs: ['127.0.0.0/8'] }, { kinds: [] })
    const options = { egressAllowCidrs: ['127.0.0.0/8'], databaseUrl: idle.databaseUrl }
    // From then on, events are for webhooks, too.
    await (await boot(options))[Symbol.asyncDispose]()
    const tenant = await newTenant(idle)
    const made = await tenant.account.post(`${tenant.path}/webhooks`, { url: `${slow.url}/` })
    expect(made.status).toBe(201)
    const path = `${tenant.path}/webhooks/${made.body.data.id}`
    const titles = Array.from({ length: 8 }, (_, n) => `Event ${n}`)
    for (const title of titles) await tenant.send({ title })

    const inFlight = new Map<string, (answer: Answer) => void>()
    const accepted: string[] = []
    let isLimiting = true
    slow.script('/', ({ body }) => {
      const { title } = JSON.parse(body).data
      if (isLimiting) return new Promise(resolve => inFlight.set(title, resolve))
      accepted.push(title)
      return { status: 200 }
    })
    await using stack = new AsyncDisposableStack()
    for (let n = 0; n < servers; n++) stack.use(await boot(options))
    await until(() => inFlight.size === titles.length)
    isLimiting = false
    const refuse = async (title: string) => {
      const count = async () => {
        const { items } = (await tenant.account.get(`${path}/attempts`)).body.data
        return items.filter((item: any) => item.status === 429).length
      }
      const before = await count()
      inFlight.get(title)?.({ status: 429, headers: { 'Retry-After': '1' } })
      await until(async () => (await count()) > before)
    }
    // The answers come in the opposite order, and the first event is still in flight afterwards.
    const [first = '', ...others] = titles
    for (const title of others.toReversed()) await refuse(title)
    if (servers > 1) {
      // The other server has nothing in flight, and tries the next events.
      await until(async () => {
        const { count } = await idle.sql`
          select from outbox where reason = 'Earlier events go first'
        `
        return count > 0
      })
    }
    await refuse(first)
    await until(() => accepted.length >= titles.length)
    expect(accepted).toEqual(titles)
  },
)

test('delivery: receivers whose bodies drip free their slots, and count by their status', async () => {
  await using slow = await startReceiver({ reply: 'drip' })
  await using whole = await boot({ egressAllowCidrs: ['127.0.0.0/8'] })
  const tenant = await newTenant(whole)
  const made = await tenant.account.post(`${tenant.path}/webhooks`, { url: `${slow.url}/` })
  expect(made.status).toBe(201)
  // Twice as many as one webhook has slots.
  const titles = Array.from({ length: 16 }, (_, n) => `Event ${n}`)
  for (const title of titles) await tenant.send({ title })
  const path = `${tenant.path}/webhooks/${made.body.data.id}`
  const read = async () => (await tenant.account.get(`${path}/attempts`)).body.data.items
  await until(async () => (await read()).length >= titles.length)
  expect((await read()).map(({ outcome, status }: any) => [outcome, status])).toEqual(
    titles.map(() => ['delivered', 200]),
  )
  expect(slow.received.map(({ body }) => JSON.parse(body).data.title).toSorted()).toEqual(
    titles.toSorted(),
  )
  await until(() => slow.open === 0)
})

test.each([1, 2])(
  'delivery: a receiver of one message a second gets each once, in order, at its pace, from %d servers',
  async servers => {
    await using slow = await startReceiver()
    await using whole = await boot({ egressAllowCidrs: ['127.0.0.0/8'] })
    await using stack = new AsyncDisposableStack()
    for (let n = 1; n < servers; n++) {
      stack.use(await boot({ egressAllowCidrs: ['127.0.0.0/8'], databaseUrl: whole.databaseUrl }))
    }
    const tenant = await newTenant(whole)
    const accepted: string[] = []
    let freeAtMs = Infinity
    slow.script('/', ({ body, atMs }) => {
      if (atMs < freeAtMs) return { status: 429, headers: { 'Retry-After': '1' } }
      freeAtMs = atMs + 1_000
      accepted.push(JSON.parse(body).data.title)
      return { status: 200 }
    })
    const made = await tenant.account.post(`${tenant.path}/webhooks`, { url: `${slow.url}/` })
    expect(made.status).toBe(201)
    const path = `${tenant.path}/webhooks/${made.body.data.id}`
    const [first = '', ...others] = Array.from({ length: 9 }, (_, n) => `Event ${n}`)
    const titles = [first, ...others]
    // Requests that are in flight when the first wait begins arrive in any order.
    await tenant.send({ title: first })
    await until(async () => {
      const { breaker } = (await tenant.account.get(path)).body.data
      return breaker.state === 'limited'
    })
    for (const title of others) await tenant.send({ title })
    freeAtMs = 0
    await until(() => accepted.length >= titles.length, 120_000)
    await until(async () => {
      const { items } = (await tenant.account.get(`${path}/attempts`)).body.data
      return items.filter((item: any) => item.outcome === 'delivered').length === titles.length
    })
    expect(accepted).toEqual(titles)
    // At most one request in vain follows each message; the events took a few seconds to send.
    expect(slow.received.length - accepted.length).toBeLessThanOrEqual(8 + titles.length)
    expect((await tenant.account.get(path)).body.data.breaker).toMatchObject({ failures: 0 })
  },
)

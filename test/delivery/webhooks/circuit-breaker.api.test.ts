import { afterAll, beforeAll, expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { createWebhookSender } from '../../../src/delivery/webhooks/sender.ts'
import { ageWebhook } from '../../support/worlds/ageing.ts'
import {
  bootForWebhooks,
  type TestWebhook,
  type WebhookServer,
} from '../../support/worlds/webhooks.ts'

let all: WebhookServer
let server: WebhookServer['server']
let webhooks: WebhookServer['webhooks']
let receiver: WebhookServer['receiver']
beforeAll(async () => {
  all = await bootForWebhooks({ reply: { status: 500 } })
  ;({ server, webhooks, receiver } = all)
})
afterAll(() => all[Symbol.asyncDispose]())

/** Returns a webhook that fails, and an event for it. */
async function newFailing() {
  const name = `/${crypto.randomUUID()}`
  const webhook = await webhooks.create(`${receiver.url}${name}`)
  const event = await webhook.newEvent()
  const count = () => receiver.received.filter(({ path }) => path === name).length
  return { webhook, event, name, count }
}

async function fail(webhook: TestWebhook, event: string, times: number) {
  for (let n = 0; n < times; n++) await webhook.send(event)
}

test('delivery: 10 failures in a row pause a webhook for 30 s; waiting deliveries use no attempt', async () => {
  const { webhook, event, count } = await newFailing()
  await fail(webhook, event, 9)
  expect((await webhook.get()).breaker).toMatchObject({ state: 'closed', failures: 9 })
  const passed = countSeconds()
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
  expect((await webhook.get()).breaker).toMatchObject({ state: 'paused', failures: 10 })
  const postponed = await webhook.send(event)
  expect(postponed).toMatchObject({ kind: 'postponed', reason: 'The webhook is paused' })
  const afterMs = postponed.kind === 'postponed' ? postponed.afterMs : 0
  expect(afterMs).toBeWithin(1_000 * (30 - passed()), 30_001)
  expect(count()).toBe(10)
  expect(await webhook.attempts()).toHaveLength(10)
})

test('delivery: after a pause one probe is sent, and its failure doubles the pause', async () => {
  const { webhook, event, count } = await newFailing()
  let passed = countSeconds()
  await fail(webhook, event, 10)
  for (const pauseS of [30, 60, 120, 240, 480, 600, 600]) {
    const { pausedUntil } = (await webhook.get()).breaker
    const restMs = Date.parse(String(pausedUntil)) - Date.now()
    expect(restMs).toBeWithin(1_000 * (pauseS - passed()), 1_000 * (pauseS + 1))
    await ageWebhook(server.sql, webhook.uuid, `${pauseS} seconds`)
    expect((await webhook.get()).breaker['state']).toBe('probing')
    const before = count()
    passed = countSeconds()
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => webhook.send(event)))
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual([
      'postponed',
      'postponed',
      'postponed',
      'postponed',
      'retry',
    ])
    expect(count()).toBe(before + 1)
  }
})

test('delivery: one of several processes sends the probe', async () => {
  const { webhook, event, count } = await newFailing()
  await fail(webhook, event, 10)
  await ageWebhook(server.sql, webhook.uuid, '30 seconds')
  const senders = Array.from({ length: 6 }, () => createWebhookSender(webhooks.parts))
  const job = webhook.toAttempt(event)
  const outcomes = await Promise.all(senders.flatMap(send => [send(job), send(job)]))
  expect(outcomes.filter(({ kind }) => kind === 'retry')).toHaveLength(1)
  expect(outcomes.filter(({ kind }) => kind === 'postponed')).toHaveLength(11)
  expect(count()).toBe(11)
})

test('delivery: a successful probe closes the breaker', async () => {
  const { webhook, event, name } = await newFailing()
  await fail(webhook, event, 10)
  await ageWebhook(server.sql, webhook.uuid, '30 seconds')
  receiver.script(name, { status: 200 })
  expect(await webhook.send(event)).toEqual({ kind: 'done' })
  expect((await webhook.get()).breaker).toEqual({
    state: 'closed',
    failures: 0,
    failingSince: null,
    pausedUntil: null,
  })
})

test('delivery: a success in between resets the count', async () => {
  const { webhook, event, name } = await newFailing()
  await fail(webhook, event, 9)
  receiver.script(name, { status: 200 }, { status: 500 })
  await fail(webhook, event, 10)
  expect((await webhook.get()).breaker).toMatchObject({ state: 'closed', failures: 9 })
})

test('delivery: concurrent failures are all counted, and cause one pause', async () => {
  const { webhook, event } = await newFailing()
  await Promise.all(Array.from({ length: 16 }, () => webhook.send(event)))
  const { failures, pausedUntil } = (await webhook.get()).breaker
  expect(failures).toBeGreaterThanOrEqual(10)
  expect(Date.parse(String(pausedUntil)) - Date.now()).toBeLessThan(31_000)
})

test('delivery: 5 days of failures alone disable a webhook, with the reason; enabling resets them', async () => {
  const { webhook, event, count } = await newFailing()
  await webhook.send(event)
  await ageWebhook(server.sql, webhook.uuid, '119 hours')
  await webhook.send(event)
  expect((await webhook.get())['isEnabled']).toBe(true)
  await ageWebhook(server.sql, webhook.uuid, '1 hour')
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
  expect(await webhook.get()).toMatchObject({
    isEnabled: false,
    disabledReason: 'Every attempt has failed for 5 days',
  })
  expect(await webhook.send(event)).toMatchObject({
    kind: 'postponed',
    reason: 'The webhook is disabled',
  })
  expect(count()).toBe(3)
  const [audited] = await server.sql`
    select actor, action from audit_log where target = ${webhook.id} order by id desc limit 1
  `
  expect(audited).toEqual({ actor: 'server', action: 'webhook.disabled' })
  const enabled = await webhook.admin.post(`${webhook.path}/enable`)
  expect(enabled.body.data).toMatchObject({ isEnabled: true, breaker: { failures: 0 } })
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
})

test('delivery: 410 disables a webhook at once, and ends this delivery', async () => {
  const { webhook, event, name } = await newFailing()
  receiver.script(name, { status: 410 })
  const reason = 'The receiver answered 410: it is permanently gone'
  expect(await webhook.send(event)).toEqual({ kind: 'gone', reason })
  expect(await webhook.get()).toMatchObject({ isEnabled: false, disabledReason: reason })
})

test('delivery: deliveries for a disabled webhook are kept for 30 days', async () => {
  const { webhook, event } = await newFailing()
  await webhook.admin.post(`${webhook.path}/disable`)
  expect(await webhook.send(event)).toMatchObject({ kind: 'postponed' })
  await ageWebhook(server.sql, webhook.uuid, '30 days')
  expect(await webhook.send(event)).toMatchObject({ kind: 'cancelled' })
})

test('delivery: an aborted delivery uses no attempt', async () => {
  const { webhook, event, name } = await newFailing()
  receiver.script(name, 'hang')
  const stop = new AbortController()
  const sending = webhook.send(event, 1, { signal: stop.signal })
  await receiver.until(1, name)
  stop.abort()
  expect(await sending).toMatchObject({ kind: 'postponed', reason: 'The request was cancelled' })
  expect(await webhook.attempts()).toEqual([])
  expect((await webhook.get()).breaker['failures']).toBe(0)
})

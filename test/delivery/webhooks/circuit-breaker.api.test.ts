import { beforeAll, expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { ageWebhook } from '../../support/worlds/ageing.ts'
import {
  bootForWebhooks,
  type TestWebhook,
  type WebhookServer,
} from '../../support/worlds/webhooks.ts'
import { forFile } from '../../support/for-file.ts'

const all = forFile(() => bootForWebhooks({ reply: { status: 500 } }))
let server: WebhookServer['server']
let webhooks: WebhookServer['webhooks']
let receiver: WebhookServer['receiver']
beforeAll(async () => {
  ;({ server, webhooks, receiver } = all)
})

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

test('delivery: 10 failures in a row pause a webhook for 30 s', async () => {
  const { webhook, event, count } = await newFailing()
  await fail(webhook, event, 9)
  expect((await webhook.get()).breaker).toMatchObject({ state: 'closed', failures: 9 })
  const passed = countSeconds()
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
  const { breaker } = await webhook.get()
  expect(breaker).toMatchObject({ state: 'paused', failures: 10 })
  const pauseMs = Date.parse(String(breaker['pausedUntil'])) - Date.now()
  expect(pauseMs).toBeWithin(1_000 * (30 - passed()), 30_001)
  expect(count()).toBe(10)
  expect(await webhook.attempts()).toHaveLength(10)
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

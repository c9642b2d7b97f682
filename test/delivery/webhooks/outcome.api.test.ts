import { expect, test } from 'bun:test'
import { newId, parseId } from '../../../src/base/ids.ts'
import { sweepWebhooks } from '../../../src/delivery/webhooks/dispatch.ts'
import {
  storeAttempt,
  storeSuccessfulAttempts,
  type CompletedAttempt,
} from '../../../src/delivery/webhooks/recording.ts'
import { countSeconds } from '../../support/until.ts'
import { ageWebhook } from '../../support/worlds/ageing.ts'
import { bootForWebhooks, type WebhookServer } from '../../support/worlds/webhooks.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(bootForWebhooks)

/** Returns a webhook whose receiver answers so, and an event for it. */
async function newWebhook(status: number, headers: Record<string, string> = {}) {
  const name = `/${crypto.randomUUID()}`
  const webhook = await world.webhooks.create(`${world.receiver.url}${name}`)
  world.receiver.script(name, { status, headers })
  const count = () => world.receiver.received.filter(({ path }) => path === name).length
  return { webhook, name, count, event: await webhook.newEvent() }
}

/** A successful attempt that is not stored yet. */
function newSuccess(
  { organization, uuid }: Awaited<ReturnType<WebhookServer['webhooks']['create']>>,
  event: string | null,
): CompletedAttempt {
  return {
    ...{ id: newId('att').uuid, projectId: organization.project.uuid, webhookId: uuid },
    ...{ kind: event === null ? 'webhook.test' : 'event.created', hasUser: false, number: 1 },
    ...{ eventId: event && (parseId('evt', event) ?? ''), startedAt: new Date(), generation: 0 },
    ...{ preset: 'standard', request: { url: world.receiver.url, body: '' } },
    answer: { status: 200, error: null, response: '', latencyMs: 1 },
    outcome: { kind: 'delivered', reason: 'The receiver answered 200' },
  }
}

test('delivery: an attempt is stored only with a webhook of its own project', async () => {
  const [own, other] = [
    await world.webhooks.create(world.receiver.url),
    await world.webhooks.create(world.receiver.url),
  ]
  await own.send(await own.newEvent())
  const right = newSuccess(own, null)
  const wrong = { ...newSuccess(own, null), projectId: other.organization.project.uuid }
  expect([...(await storeSuccessfulAttempts(world.server.sql, [wrong, right]))]).toEqual([right.id])
  await world.server.sql.begin(tx => storeAttempt(tx, wrong))
  expect(await world.server.sql`select from webhook_attempts where id = ${wrong.id}`).toHaveLength(
    0,
  )
})

test('delivery: an attempt whose record cannot be stored keeps its outcome, and is not repeated', async () => {
  const { sql } = world.server
  const made = [await newWebhook(200), await newWebhook(500)]
  await sql.unsafe(`
    create function refuse_attempts() returns trigger language plpgsql as $$
    begin raise exception 'A bug'; end $$;
    create trigger refuse_attempts before insert on webhook_attempts execute function refuse_attempts();
  `)
  try {
    const sent = await Promise.all(made.map(({ webhook, event }) => webhook.send(event)))
    expect(sent.map(({ kind }) => kind)).toEqual(['done', 'retry'])
    expect(made.map(({ count }) => count())).toEqual([1, 1])
  } finally {
    await sql`drop trigger refuse_attempts on webhook_attempts`
  }
})

test('delivery: 429 holds the webhook as long as it asks; it is neither a failure nor an attempt', async () => {
  const { webhook, event, name, count } = await newWebhook(429, { 'Retry-After': '120' })
  const passed = countSeconds()
  const limited = await webhook.send(event)
  expect(limited).toMatchObject({
    ...{ kind: 'postponed', afterMs: 0, isAlone: true },
    reason: 'The receiver answered 429: it limits requests',
  })
  const { breaker } = await webhook.get()
  expect(breaker).toMatchObject({ state: 'limited', failures: 0, failingSince: null })
  const waitMs = Date.parse(String(breaker['pausedUntil'])) - Date.now()
  expect(waitMs).toBeWithin(1_000 * (120 - passed()), 120_001)
  expect(count()).toBe(1)
  expect(await webhook.attempts()).toMatchObject([{ status: 429, outcome: 'failed', number: 1 }])
  // Then it gets single attempts for a while, so that they come at its pace.
  const [target] = await world.server.sql`
    select single_until > paused_until as is_single from delivery_targets where id = ${webhook.uuid}
  `
  expect(target).toEqual({ is_single: true })
  // A success in flight does not end the wait; the end of the wait needs no probe.
  await world.server.sql.begin(tx => storeAttempt(tx, newSuccess(webhook, event)))
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'limited' } })
  world.receiver.script(name, { status: 200 })
  await ageWebhook(world.server.sql, webhook.uuid, '120 seconds')
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed' } })
  const sent = await Promise.all([webhook.send(event), webhook.send(await webhook.newEvent())])
  expect(sent).toEqual([{ kind: 'done' }, { kind: 'done' }])
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed', pausedUntil: null } })
})

test('delivery: a successful test ends the wait that a receiver asked for', async () => {
  const { webhook, event, name } = await newWebhook(429, { 'Retry-After': '86400' })
  await webhook.send(event)
  world.receiver.script(name, { status: 200 })
  await webhook.admin.post(`${webhook.path}/test`)
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'closed', pausedUntil: null } })
  expect(await webhook.send(event)).toEqual({ kind: 'done' })
})

test('delivery: any other failure with Retry-After counts, and holds the webhook', async () => {
  const { webhook, event, count } = await newWebhook(503, { 'Retry-After': '60' })
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry', afterMs: 60_000 })
  expect(await webhook.get()).toMatchObject({ breaker: { state: 'limited', failures: 1 } })
  expect(count()).toBe(1)
})

test('delivery: 10 failures in a row pause a webhook for 30 s', async () => {
  const { webhook, event, name, count } = await newWebhook(500)
  for (let n = 0; n < 9; n++) await webhook.send(event)
  expect((await webhook.get()).breaker).toMatchObject({ state: 'closed', failures: 9 })
  const passed = countSeconds()
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
  const { breaker } = await webhook.get()
  expect(breaker).toMatchObject({ state: 'paused', failures: 10 })
  const pauseMs = Date.parse(String(breaker['pausedUntil'])) - Date.now()
  expect(pauseMs).toBeWithin(1_000 * (30 - passed()), 30_001)
  expect(count()).toBe(10)
  expect(await webhook.attempts()).toHaveLength(10)
  // A successful probe ends it.
  await ageWebhook(world.server.sql, webhook.uuid, '30 seconds')
  world.receiver.script(name, { status: 200 })
  expect(await webhook.send(event)).toEqual({ kind: 'done' })
  expect((await webhook.get()).breaker).toEqual({
    state: 'closed',
    failures: 0,
    failingSince: null,
    pausedUntil: null,
  })
})

test('delivery: concurrent failures are all counted, and cause one pause', async () => {
  const { webhook, event } = await newWebhook(500)
  await Promise.all(Array.from({ length: 16 }, () => webhook.send(event)))
  const { failures, pausedUntil } = (await webhook.get()).breaker
  expect(failures).toBeGreaterThanOrEqual(10)
  expect(Date.parse(String(pausedUntil)) - Date.now()).toBeLessThan(31_000)
})

test('delivery: 5 days of failures alone disable a webhook, with the reason; enabling resets them', async () => {
  const { webhook, event, count } = await newWebhook(500)
  await webhook.send(event)
  await ageWebhook(world.server.sql, webhook.uuid, '119 hours')
  await webhook.send(event)
  expect((await webhook.get())['isEnabled']).toBe(true)
  await ageWebhook(world.server.sql, webhook.uuid, '1 hour')
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
  const [audited] = await world.server.sql`
    select actor, action from audit_log where target = ${webhook.id} order by id desc limit 1
  `
  expect(audited).toEqual({ actor: 'server', action: 'webhook.disabled' })
  const enabled = await webhook.admin.post(`${webhook.path}/enable`)
  expect(enabled.body.data).toMatchObject({ isEnabled: true, breaker: { failures: 0 } })
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
})

test('delivery: deliveries wait 30 days for a disabled webhook, and are cancelled then', async () => {
  const { sql } = world.server
  const { webhook, event, count } = await newWebhook(200)
  await webhook.admin.post(`${webhook.path}/disable`)
  const look = async () => {
    await sweepWebhooks(sql, false)
    const paused = await sql`
      select from delivery_targets where id = ${webhook.uuid} and paused_until = 'infinity'
    `
    return [paused.length, await webhook.send(event)]
  }
  await ageWebhook(sql, webhook.uuid, '29 days 23 hours')
  expect(await look()).toMatchObject([1, { kind: 'postponed' }])
  await ageWebhook(sql, webhook.uuid, '1 hour')
  const reason = 'The webhook was disabled for 30 days'
  expect(await look()).toEqual([0, { kind: 'cancelled', reason }])
  expect(count()).toBe(0)
})

test('delivery: 410 disables a webhook at once, and ends this delivery', async () => {
  const { webhook, event, name } = await newWebhook(500)
  world.receiver.script(name, { status: 410 })
  const reason = 'The receiver answered 410: it is permanently gone'
  expect(await webhook.send(event)).toEqual({ kind: 'gone', reason })
  expect(await webhook.get()).toMatchObject({ isEnabled: false, disabledReason: reason })
})

import { expect, test } from 'bun:test'
import {
  findSignatureProblem,
  formatPreviousSecrets,
  parsePreviousSecrets,
} from '../../../src/delivery/webhooks/signing.ts'
import { until } from '../../support/until.ts'
import { ageWebhook } from '../../support/worlds/ageing.ts'
import { bootForWebhooks, type TestWebhook } from '../../support/worlds/webhooks.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(bootForWebhooks)

/** Returns a webhook and an event for it, and how to let its endpoint answer. */
async function newWebhook() {
  const name = `/${crypto.randomUUID()}`
  const webhook = await world.webhooks.create(`${world.receiver.url}${name}`)
  for (const path of [name, `${name}/`, `${name}/new`]) world.receiver.script(path, { status: 500 })
  const answer = Promise.withResolvers<{ status: number; headers?: Record<string, string> }>()
  const count = () => world.receiver.received.filter(({ path }) => path.startsWith(name)).length
  return { webhook, event: await webhook.newEvent(), name, answer, count }
}

const newUrl = (name: string) => ({ url: `${world.receiver.url}${name}/new` })
const change = {
  URL: (webhook: TestWebhook, name: string) => webhook.admin.patch(webhook.path, newUrl(name)),
  secret: (webhook: TestWebhook) => webhook.admin.post(`${webhook.path}/rotate`, {}),
  switch: async (webhook: TestWebhook) => {
    await webhook.admin.post(`${webhook.path}/disable`)
    return webhook.admin.post(`${webhook.path}/enable`)
  },
}

test.each(
  Object.entries(change).flatMap(([what, act]) =>
    ([410, 500, 429] as const).map(status => ({ what, act, status })),
  ),
)(
  'delivery: a $status of before a change of the $what counts neither for the webhook nor for the delivery',
  async ({ act, status }) => {
    const { webhook, event, name, answer, count } = await newWebhook()
    world.receiver.script(name, () => answer.promise, { status: 200 })
    world.receiver.script(`${name}/new`, { status: 200 })
    const sending = webhook.send(event, 10)
    await until(() => count() === 1)
    expect((await act(webhook, name)).status).toBe(200)
    const before = await webhook.get()
    answer.resolve({ status, headers: { 'Retry-After': '3600' } })
    expect(await sending).toEqual({
      kind: 'postponed',
      afterMs: 0,
      isAlone: true,
      reason: 'The webhook was changed during the attempt',
    })
    expect(await webhook.get()).toEqual(before)
    expect(await webhook.attempts()).toMatchObject([{ status, number: 10 }])
    expect(await webhook.send(event, 10)).toEqual({ kind: 'done' })
  },
)

test('delivery: a success at the old URL is no success of the new one', async () => {
  const { webhook, event, name, answer, count } = await newWebhook()
  world.receiver.script(name, () => answer.promise)
  const sending = webhook.send(event)
  await until(() => count() === 1)
  expect((await change.URL(webhook, name)).status).toBe(200)
  expect(await webhook.send(event)).toMatchObject({ kind: 'retry' })
  answer.resolve({ status: 200 })
  expect(await sending).toEqual({ kind: 'done' })
  expect(await webhook.get()).toMatchObject({ breaker: { failures: 1 } })
})

test('delivery: another URL or preset ends a pause; a new name does not', async () => {
  const { webhook, event, name, count } = await newWebhook()
  const fail = async (times: number) => {
    for (let n = 0; n < times; n++) await webhook.send(event)
  }
  await fail(10)
  const { url } = await webhook.get()
  const edited = await webhook.admin.patch(webhook.path, { name: 'Another', url })
  expect(edited.body.data.breaker).toMatchObject({ state: 'paused', failures: 10 })
  const moved = await webhook.admin.patch(webhook.path, newUrl(name))
  expect(moved.body.data.breaker).toMatchObject({
    state: 'closed',
    failures: 0,
    failingSince: null,
  })
  await fail(1)
  await ageWebhook(world.server.sql, webhook.uuid, '6 days')
  const shaped = await webhook.admin.patch(webhook.path, { preset: 'ntfy' })
  expect(shaped.body.data.breaker).toMatchObject({ state: 'closed', failures: 0 })
  // Six days of failures at the former endpoint do not disable it.
  await fail(1)
  expect(await webhook.get()).toMatchObject({ isEnabled: true, breaker: { failures: 1 } })
  expect(count()).toBe(12)
})

test('delivery: each former secret signs until its own time, also after a second rotation', async () => {
  const { webhook, event, name } = await newWebhook()
  const rotate = async (graceHours: number) =>
    (await webhook.admin.post(`${webhook.path}/rotate`, { graceHours })).body.data
  /** Sends an event, and returns how many signatures there are, and which secrets match. */
  const verify = async (secrets: string[]) => {
    await webhook.send(event)
    const { headers, body } = world.receiver.received.findLast(({ path }) => path === name)!
    const message = {
      body,
      id: headers['webhook-id']!,
      timestamp: headers['webhook-timestamp']!,
      signature: headers['webhook-signature']!,
    }
    const matches = secrets.map(one => !findSignatureProblem(message, one, Date.now()))
    return [message.signature.split(' ').length, ...matches]
  }
  const first = webhook.secret
  const second = await rotate(48)
  expect(await verify([first, second.secret])).toEqual([2, true, true])
  const third = await rotate(1)
  expect(await verify([first, second.secret, third.secret])).toEqual([3, true, true, true])
  expect(third.previousSecretUntil).toBe(second.previousSecretUntil)
  for (let n = 0; n < 6; n++) await rotate(2)
  expect((await verify([first, second.secret, third.secret]))[0]).toBe(6)
  // A leaked secret must end at once.
  const last = await rotate(0)
  expect(last.previousSecretUntil).toBeNull()
  expect(await verify([first, second.secret, last.secret])).toEqual([1, false, false, true])
  const { secret: next } = await rotate(2)
  expect(await verify([last.secret, next])).toEqual([2, true, true])
  await ageWebhook(world.server.sql, webhook.uuid, '2 hours')
  expect(await verify([last.secret, next])).toEqual([1, false, true])
  const tooLong = await webhook.admin.post(`${webhook.path}/rotate`, { graceHours: 169 })
  expect(tooLong.status).toBe(400)
})

test('delivery: each former secret signs until its own time', () => {
  const text = formatPreviousSecrets([
    { secret: 'whsec_b', untilMs: 20 },
    { secret: 'whsec_a', untilMs: 30 },
  ])
  const parse = (nowMs: number) =>
    parsePreviousSecrets(text, { lastUntilMs: 30, nowMs }).map(({ secret }) => secret)
  expect([parse(10), parse(20), parse(30)]).toEqual([['whsec_b', 'whsec_a'], ['whsec_a'], []])
  const single = formatPreviousSecrets([{ secret: 'whsec_a', untilMs: 30 }])
  expect(single).toBe('whsec_a')
  expect(parsePreviousSecrets(single, { lastUntilMs: 30, nowMs: 10 })).toEqual([
    { secret: 'whsec_a', untilMs: 30 },
  ])
})

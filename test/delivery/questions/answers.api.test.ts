import { expect, test } from 'bun:test'
import { parseId } from '../../../src/base/ids.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { forFile, forProcess } from '../../support/for-file.ts'
import { createAnswerWaits } from '../../../src/delivery/questions/answer-waits.ts'
import { findSignatureProblem } from '../../../src/delivery/webhooks/signing.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { until } from '../../support/until.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const world = forProcess(openPushWorld)
const receiver = forFile(() => startReceiver())

const ACTIONS = [
  { id: 'deploy', label: 'Deploy' },
  { id: 'abort', label: 'Abort' },
]
const ask = (more: object = {}) => ({
  ...{ title: 'Deploy 1.4?', actions: ACTIONS, answer: { expiresInSeconds: 600 } },
  ...more,
})

async function openTenant() {
  const tenant = await newTenant(world.server)
  const { v1, account, path } = tenant
  return {
    ...tenant,
    getAnswer: async (id: string, query = '') =>
      (await v1.get(`/v1/events/${id}/answer${query}`)).body.data,
    answer: (id: string, action = 'deploy', by = account) =>
      by.post(`${path}/events/${id}/answer`, { action }),
    status: async (id: string) => (await account.get(`${path}/events/${id}/answer`)).body.data,
  }
}

test('attention §7 the first answer counts, and is an event of the thread', async () => {
  const { send, v1, answer, getAnswer, status, account, path, organization } = await openTenant()
  const event = await send(ask())
  const { expiresAt } = event.answer
  expect(event).toMatchObject({
    ...{ thread: `question:${event.id}`, state: 'running', actions: ACTIONS },
    answer: { by: 'members' },
  })
  expect(Date.parse(expiresAt) - Date.parse(event.createdAt)).toBe(600_000)
  expect((await v1.get(`/v1/events/${event.id}`)).body.data).toEqual(event)
  const waiting = {
    state: 'waiting',
    action: null,
    by: null,
    at: null,
    receivedAt: null,
    expiresAt,
  }
  expect(await getAnswer(event.id)).toEqual(waiting)
  expect((await answer(event.id, 'other')).status).toBe(400)
  // The request waits before the answer comes.
  const waits = getAnswer(event.id, '?wait=60')
  const answers = await Promise.all([0, 1, 2, 3].map(n => answer(event.id, ACTIONS[n % 2]!.id)))
  const [first] = answers.filter(({ status }) => status === 200)
  expect(answers.map(one => one.status).toSorted()).toEqual([200, 409, 409, 409])
  const { receivedAt: _, ...told } = first!.body.data
  expect(told).toMatchObject({ state: 'answered', by: 'Test person' })
  const label = ACTIONS.find(({ id }) => id === told.action)!.label
  const refused = answers.find(one => one.status === 409)!.body
  expect(refused).toMatchObject({ details: told, error: `${label} — answered by Test person` })
  expect(await waits).toEqual({ ...told, receivedAt: expect.any(String) })
  expect((await status(event.id)).receivedAt).not.toBeNull()
  const { items } = (await v1.get(`/v1/events?threadSeq=${event.seq}`)).body.data
  expect(items.map((one: any) => [one.title, one.state, one.metadata, one.description])).toEqual([
    [
      ...[refused.error, 'resolved', { answer: { action: told.action, by: 'Test person' } }],
      // A row and a notification have the answer alone otherwise.
      'Deploy 1.4?',
    ],
    ['Deploy 1.4?', 'running', {}, null],
  ])
  const entries = await listAuditEntries(world.server.sql, organization.uuid)
  expect(entries.filter(({ action }) => action === 'event.answered')).toHaveLength(1)
  expect((await account.get(`${path}/events/${items[0].id}/answer`)).status).toBe(404)
})

test('attention §7 a repeated request gets the same question, and asks once', async () => {
  const { v1, projectId } = await openTenant()
  const body = ask({
    channelName: 'ops',
    answer: { expiresInSeconds: 60, callbackUrl: 'https://example.com/answers', by: 'admins' },
  })
  const headers = { 'Idempotency-Key': 'ask' }
  const first = await v1.post('/v1/events', body, headers)
  expect(first.body.data).toMatchObject({ answer: { by: 'admins' } })
  expect(first.body.data.answer.secret).toMatch(/^whsec_/)
  expect((await v1.post('/v1/events', body, headers)).text).toBe(first.text)
  const { answer } = (await v1.get(`/v1/events/${first.body.data.id}`)).body.data
  expect(Object.keys(answer)).toEqual(['expiresAt', 'by'])
  const stored = await world.server
    .sql`select callback_url from questions where project_id = ${projectId}`
  expect(stored.map(one => one['callback_url'].slice(0, 3))).toEqual(['v1.'])
})

test.each([
  ['answer', { answer: undefined }],
  ['actions', { actions: undefined }],
  ['actions.1.id', { actions: [ACTIONS[0], ACTIONS[0]] }],
  ['actions.0.id', { actions: [{ id: 'Deploy!', label: 'Deploy' }] }],
  ['thread', { thread: 'deploy' }],
  ['state', { state: 'firing' }],
  ['answer.callbackUrl', { answer: { expiresInSeconds: 60, callbackUrl: 'http://10.0.0.1/' } }],
])('attention §7 a question that is refused names %s', async (path, more) => {
  const { v1 } = await openTenant()
  const { status, body } = await v1.post('/v1/events', ask({ channelName: 'ops', ...more }))
  expect([status, body.details[0].path.join('.')]).toEqual([400, path])
})

test('attention §7 a question for owners refuses admins, and only its own organization sees it', async () => {
  const one = await openTenant()
  const owner = await newMember(world.server, one.organization, 'owner')
  const event = await one.send(ask({ answer: { expiresInSeconds: 60, by: 'owners' } }))
  expect((await one.answer(event.id)).status).toBe(403)
  expect((await one.answer(event.id, 'deploy', owner)).status).toBe(200)
})

test('an organization takes no places from others that wait for answers, however many projects it has', async () => {
  const waits = createAnswerWaits()
  const { signal } = new AbortController()
  const wait = (organizationId: string, nth: number) =>
    waits.until({ organizationId, projectId: `${nth}`, waitMs: 60_000, signal }, () =>
      Promise.resolve({ state: 'waiting' as const, seq: nth }),
    )
  const waiting = Array.from({ length: 100 }, (_, nth) => wait('one', nth))
  await expect(wait('one', 100)).rejects.toMatchObject({ code: 'unavailable' })
  waiting.push(wait('another', 0))
  waits.stop()
  expect(await Promise.all(waiting)).toHaveLength(101)
})

/** Makes the timers of an event due, as if the time had passed without a server. */
async function pass({ id }: { id: string }, interval = '3 hours') {
  const eventId = parseId('evt', id)!
  await world.server.sql.begin(async tx => {
    await tx`update questions set expires_at = expires_at - ${interval}::interval where id = ${eventId}`
    await tx`
      update outbox set available_at = now(), requested_at = requested_at - ${interval}::interval
      where event_id = ${eventId} and kind = 'timer'
    `
  })
}

test('attention §7 a question that expired while the server was down expires once', async () => {
  const { send, answer, getAnswer, v1 } = await openTenant()
  const event = await send(ask())
  const waits = getAnswer(event.id, '?wait=60')
  await pass(event)
  expect(await waits).toMatchObject({ state: 'expired', action: null, by: null })
  const refused = await answer(event.id)
  expect([refused.status, refused.body.error]).toEqual([409, 'Nobody answered in time'])
  const titles = async () =>
    (await v1.get(`/v1/events?threadSeq=${event.seq}`)).body.data.items.map((one: any) => one.title)
  await until(async () => (await titles()).length > 1)
  await world.server.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    select project_id, event_id, kind, target_id from deliveries where event_id = ${parseId('evt', event.id)!}
  `
  await until(
    async () =>
      (await world.server.sql`select from outbox where event_id = ${parseId('evt', event.id)!}`)
        .count === 0,
  )
  expect(await titles()).toEqual(['Nobody answered in time', 'Deploy 1.4?'])
  const { at, expiresAt } = await getAnswer(event.id)
  expect(at).toBe(expiresAt)
})

test('attention §7 a callback is signed, repeated until it is accepted, and then received', async () => {
  const one = await openTenant()
  receiver.script('/answers', { status: 503 }, { status: 204 })
  const callbackUrl = `${receiver.url}/answers`
  const event = await one.send(ask({ answer: { expiresInSeconds: 600, callbackUrl } }))
  await one.answer(event.id)
  await receiver.until(1, '/answers')
  expect((await one.status(event.id)).receivedAt).toBeNull()
  await receiver.until(2, '/answers')
  await until(async () => (await one.status(event.id)).receivedAt !== null)
  const { at } = await one.status(event.id)
  const [stored] = await world.server
    .sql`select callback_url from questions where id = ${parseId('evt', event.id)!}`
  expect(stored!['callback_url']).toBeNull()
  const sent = receiver.received.filter(({ path }) => path === '/answers')
  for (const { body, headers } of sent) {
    expect(JSON.parse(body)).toEqual({
      type: 'event.answered',
      timestamp: at,
      data: { eventId: event.id, action: 'deploy', by: 'Test person' },
    })
    const signed = {
      body,
      id: headers['webhook-id']!,
      timestamp: headers['webhook-timestamp']!,
      signature: headers['webhook-signature']!,
    }
    expect(findSignatureProblem(signed, event.answer.secret, Date.now())).toBeUndefined()
  }
})

test('attention §7 a callback that hangs delays only the others of its host', async () => {
  const one = await openTenant()
  await using slow = await startReceiver()
  slow.script('/slow', 'hang')
  const askAndAnswer = async (callbackUrl: string) => {
    const event = await one.send(ask({ answer: { expiresInSeconds: 600, callbackUrl } }))
    await one.answer(event.id)
  }
  for (let n = 0; n < 5; n++) await askAndAnswer(`${slow.url}/slow`)
  await slow.until(4, '/slow')
  await askAndAnswer(`${receiver.url}/fast`)
  await receiver.until(1, '/fast')
  expect(slow.received).toHaveLength(4)
})

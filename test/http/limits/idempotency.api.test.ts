import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { SCOPES, type Scope } from '../../../src/access/keys/schema.ts'
import { rotateKey } from '../../support/worlds/keys.ts'
import { ageAnswers } from '../../support/worlds/ageing.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()

const event = {
  channelName: 'payments',
  title: 'New payment',
  metadata: { amount: 42, list: [1, 2] },
}
const KEYED = { 'idempotency-key': 'order-1' }

test('§8 a replay is the first answer byte for byte, is marked as a replay, and has no effect', async () => {
  const project = await newProject(server)
  const first = await project.post('/v1/events', event, KEYED)
  expect(first.status).toBe(201)
  expect(first.headers.get('x-idempotent-replay')).toBeNull()
  expect(first.headers.get('x-request-id')).toBe(first.body.requestId)

  const replay = await project.post('/v1/events', event, KEYED)
  expect(replay.status).toBe(201)
  expect(replay.text).toBe(first.text)
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  expect(replay.headers.get('content-type')).toBe(first.headers.get('content-type'))
  expect(replay.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
  expect(await countEvents(project)).toBe(1)
})

test('contract §5 key order and white space of a body are ignored, every other difference of a field counts', async () => {
  const project = await newProject(server)
  const first = await project.post('/v1/events', event, KEYED)
  const same = [
    '{"title":"New payment","metadata":{"list":[1,2],"amount":42},"channelName":"payments"}',
    '{ "metadata":{"amount":42.0,\n"list":[ 1, 2 ]},"channelName":"p\\u0061yments","title":"New payment"}',
    '{"title":"New payment","metadata":{"list":[1e0,0.2E1],"amount":4200e-2},"channelName":"payments"}',
  ]
  for (const body of same) expect((await sendJson(project, body)).text).toBe(first.text)
  const different = [
    { ...event, metadata: { amount: 42, list: [2, 1] } },
    { ...event, metadata: { amount: '42', list: [1, 2] } },
    { ...event, metadata: { amount: -42, list: [1, 2] } },
    { ...event, metadata: { amount: 420, list: [1, 2] } },
    { ...event, title: 'New payment ' },
    { ...event, notify: true },
    { ...event, level: 'high' },
    { ...event, url: 'https://example.com' },
  ]
  for (const body of different) {
    const answer = await project.post('/v1/events', body, KEYED)
    expect(answer.status).toBe(422)
    expect(answer.body).toMatchObject({ success: false, code: 'idempotency_key_reused' })
  }
  expect((await project.post('/v1/events', event, KEYED)).text).toBe(first.text)
  expect(await countEvents(project)).toBe(1)
})

test('contract §5 unknown fields of a body are ignored, those within a field count', async () => {
  const project = await newProject(server)
  for (const [path, body] of [
    ['/v1/events', event],
    ['/v1/log', { channel: 'payments', event: 'New payment', tags: { amount: 42 } }],
    ['/v1/identify', { user_id: 'ada', properties: { plan: 'free' } }],
  ] as const) {
    const key = { 'idempotency-key': path }
    const send = (json: object) => project.post(path, json, key)
    const first = await send({ ...body, sdk: '1.0', sentAt: 1 })
    expect(first.headers.get('x-idempotent-replay')).toBeNull()
    const same = [{}, { sdk: '1.1', sentAt: 2 }, { other: { a: [1] } }, { ['__proto__']: { a: 1 } }]
    for (const unknown of same) expect((await send({ ...unknown, ...body })).text).toBe(first.text)
    for (const name of ['metadata', 'tags', 'properties']) {
      const value = (body as Record<string, unknown>)[name]
      if (value === undefined) continue
      const { status } = await send({ ...body, [name]: { ...value, unknown: 1 } })
      expect(status).toBe(422)
    }
  }
  const body = { ...event, title: 'At once' }
  const key = { 'idempotency-key': 'at once' }
  const posts = Array.from({ length: 5 }, (_, n) => project.post('/v1/events', { ...body, n }, key))
  expect(new Set((await Promise.all(posts)).map(({ text }) => text)).size).toBe(1)
})

test.each<[string, readonly Scope[]]>([
  ['all scopes', SCOPES],
  ['scopes to write alone', ['events:write', 'identities:write']],
])('case 12: a key used for another route is refused with 422 (%s)', async (_, scopes) => {
  const project = await newProject(server, { scopes })
  await project.post('/v1/events', event, KEYED)
  await project.post('/v1/identify', { user_id: 'ada' }, { 'idempotency-key': 'identify' })
  const others = [
    await project.post('/v1/log', { channel: 'payments', event: 'New payment' }, KEYED),
    await project.post('/v1/identify', { user_id: 'bob' }, KEYED),
    await sendText(project, '/v1/channels/payments', 'New payment'),
    await project.post('/v1/events', event, { 'idempotency-key': 'identify' }),
  ]
  expect(others.map(({ status, body }) => [status, body.code])).toEqual(
    Array(4).fill([422, 'idempotency_key_reused']),
  )
  const [stored] = await server.sql<[{ events: number; users: number }]>`
    select
      (select count(*)::int from events where project_id = ${project.id}) as events,
      (select count(*)::int from identities where project_id = ${project.id}) as users
  `
  expect(stored).toEqual({ events: 1, users: 1 })
})

test('contract §5 for text, each byte and the channel in the path count, the content type does not', async () => {
  const project = await newProject(server)
  const first = await sendText(project, '/v1/channels/ops', 'Backup done\nin 3 s')
  expect(first.status).toBe(201)
  const form = 'application/x-www-form-urlencoded'
  for (const path of ['/v1/channels/ops', '/v1/channels/ops?', '/v1/channels/ops?&']) {
    const replay = await sendText(project, path, 'Backup done\nin 3 s', form)
    expect(replay.text).toBe(first.text)
    expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  }
  for (const [path, text] of [
    ['/v1/channels/ops', 'Backup done\nin 3 s\n'],
    ['/v1/channels/ops', 'Backup done\r\nin 3 s'],
    ['/v1/channels/dev', 'Backup done\nin 3 s'],
    ['/v1/channels/ops?level=high', 'Backup done\nin 3 s'],
  ] as const) {
    expect((await sendText(project, path, text)).status).toBe(422)
  }
})

test('a server of 0.3.0 stores text without a query under the same fingerprint', async () => {
  const project = await newProject(server)
  await sendText(project, '/v1/channels/ops', 'Backup done')
  const [stored] = await server.sql<[{ fingerprint: Buffer }]>`
    select fingerprint from idempotency_keys where project_id = ${project.id}
  `
  const expected = createHash('sha256').update('POST /v1/channels/ops\nBackup done').digest()
  expect(stored.fingerprint).toEqual(expected)
})

test('case 12: a key replays one second before 24 hours, and creates a new event after them', async () => {
  const project = await newProject(server)
  const first = await project.post('/v1/events', event, KEYED)
  await ageAnswers(server.sql, project.id, '23:59:30')
  const replay = await project.post('/v1/events', event, KEYED)
  expect(replay.text).toBe(first.text)
  await ageAnswers(server.sql, project.id, '30 s')
  const other = await project.post('/v1/events', { ...event, title: 'Another' }, KEYED)
  expect(other.status).toBe(201)
  expect(other.headers.get('x-idempotent-replay')).toBeNull()
  expect(other.body.data).toMatchObject({ seq: 2, title: 'Another' })
  expect((await project.post('/v1/events', event, KEYED)).status).toBe(422)

  await ageAnswers(server.sql, project.id, '24 hours')
  expect((await project.post('/v1/identify', { user_id: 'ada' }, KEYED)).status).toBe(200)
})

test('contract §5 refusals are not stored: the key stays free', async () => {
  const project = await newProject(server)
  const writer = await newProject(server, { limit: 1 })
  const refused = [
    await project.post('/v1/events', { title: '' }, KEYED),
    await sendJson(project, '{', KEYED),
    await createRequests(server.url, 'wrong').post('/v1/events', event, KEYED),
    (await writer.get('/v1/me'), await writer.post('/v1/events', event, KEYED)),
  ]
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 401, 429])
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from idempotency_keys where project_id in (${project.id}, ${writer.id})
  `
  expect(row.n).toBe(0)
  const first = await project.post('/v1/events', event, KEYED)
  expect(first.status).toBe(201)
  expect(first.headers.get('x-idempotent-replay')).toBeNull()
})

test('case 12: a key has 1 to 255 printable ASCII characters', async () => {
  const { post, request } = await newProject(server, { scopes: SCOPES })
  const use = (key: string) => post('/v1/events', event, { 'idempotency-key': key })
  const longest = 'k'.repeat(255)
  for (const key of ['k', longest, `"${longest}"`, 'with space', ',a,b,', `!"#$%&'()*+,-./~`]) {
    expect((await use(key)).status).toBe(201)
  }
  for (const [key, code] of [
    ['', 'too_short'],
    ['""', 'too_short'],
    [`${longest}k`, 'too_long'],
    ['schlüssel', 'invalid_format'],
    ['tab\there', 'invalid_format'],
    // Two headers arrive like this.
    ['order-1, order-1', 'invalid_format'],
    ['"order-1", "order-1"', 'invalid_format'],
    ['order-1, "order-1"', 'invalid_format'],
  ] as const) {
    const { status, body } = await use(key)
    expect(status).toBe(400)
    expect(body.details).toMatchObject([{ path: ['Idempotency-Key'], code }])
  }
  const headers = { 'idempotency-key': 'tab\there' }
  expect((await request('/v1/me', { headers })).status).toBe(200)
  const erasure = await request('/v1/users/nobody', { method: 'DELETE', headers })
  expect(erasure.status).toBe(404)
})

test('contract §5 a key is the same in quotes, and after a rotation of the API key', async () => {
  const project = await newProject(server)
  const first = await project.post('/v1/events', event, KEYED)
  const { token } = await rotateKey(server.sql, project.id, { id: project.keyId, overlapHours: 0 })
  expect((await project.get('/v1/me')).status).toBe(401)
  // In quotes it is the same key.
  const quoted = { 'idempotency-key': '"order-1"' }
  const replay = await createRequests(server.url, token).post('/v1/events', event, quoted)
  expect(replay.text).toBe(first.text)
})

function sendJson(project: TestProject, body: string, headers: Record<string, string> = KEYED) {
  return project.request('/v1/events', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

function sendText(project: TestProject, path: string, body: string, type = 'text/plain') {
  return project.request(path, {
    method: 'POST',
    body,
    headers: { ...KEYED, 'content-type': type },
  })
}

async function countEvents(project: TestProject): Promise<number> {
  return (await project.get('/v1/events')).body.data.items.length
}

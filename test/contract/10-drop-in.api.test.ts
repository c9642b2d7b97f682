import { expect, test } from 'bun:test'
import { EmitKit, EmitKitError, RateLimitError, ValidationError } from '@emitkit/js'
import { expectIssues } from '../support/answers.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'

const server = withSharedServer()

function toEmitKit({ key }: Pick<TestProject, 'key'>): EmitKit {
  return new EmitKit(key, { baseUrl: server.url })
}

test('contract §10 @emitkit/js creates events', async () => {
  const project = await newProject(server, { limit: 100 })
  const client = toEmitKit(project)
  const result = await client.events.create({
    channelName: 'payments',
    title: 'Payment received',
    description: 'From Ada',
    icon: '💰',
    tags: ['stripe'],
    metadata: { amount: 99.99 },
    userId: null,
    notify: false,
    source: 'shop',
  })
  expect((await project.get(`/v1/events/${result.data.id}`)).body.data).toEqual(result.data)
  expect(result.data).toMatchObject({ title: 'Payment received', notify: false, source: 'shop' })
  expect(result.wasReplayed).toBe(false)
  expect(result.requestId).toMatch(/^[0-9a-f-]{36}$/)
  expect(result.rateLimit).toMatchObject({ limit: 100, remaining: 99 })
  expect(result.rateLimit.resetIn).toBeWithin(1, 61_000)
  expect(client.rateLimit).toEqual(result.rateLimit)
})

test('§10 an event takes user_id as identify does, and userId takes precedence', async () => {
  const { post } = await newProject(server)
  const event = { channelName: 'payments', title: 'Paid' }
  const send = async (fields: object) =>
    (await post('/v1/events', { ...event, ...fields })).body.data.userId
  expect(await send({ user_id: 'ada' })).toBe('ada')
  expect(await send({ user_id: 'ada', userId: 'bob' })).toBe('bob')
  expect(await send({ user_id: 'ada', userId: null })).toBe('ada')
  expect(await send({ user_id: null })).toBeNull()
  expectIssues(await post('/v1/events', { ...event, user_id: 1 }), 'user_id invalid_type')
})

test("contract §10 a body of LogSnag's clients on /v1/events is told where it belongs", async () => {
  const { post } = await newProject(server)
  const log = { project: 'x', channel: 'payments', event: 'Paid' }
  const answer = await post('/v1/events', log)
  expectIssues(answer, 'event invalid_value', 'channelName required', 'title required')
  expect(answer.body.details[0].message).toContain('/v1/log')
  expect((await post('/v1/log', log)).status).toBe(201)
  // Unknown fields stay unknown.
  const event = { channelName: 'payments', title: 'Paid', channel: 1, event: 2 }
  expect((await post('/v1/events', event)).status).toBe(201)
  expectIssues(await post('/v1/events', { ...event, title: 1 }), 'title invalid_type')
})

test('contract §10 @emitkit/js identifies users, and its events resolve their aliases', async () => {
  const client = toEmitKit(await newProject(server))
  const identity = {
    user_id: 'user_123',
    properties: { email: 'ada@example.com', plan: 'pro' },
    aliases: ['ada@example.com', 'ada', 'ada'],
  }
  const { data } = await client.identify(identity)
  expect(data).toMatchObject({ userId: 'user_123', properties: identity.properties })
  expect(data.aliases.created).toEqual(['ada@example.com', 'ada'])
  expect(data.aliases.failed).toHaveLength(1)
  const event = await client.events.create({ channelName: 'c', title: 't', userId: 'ada' })
  expect(event.data.userId).toBe('user_123')
})

test('contract §10 @emitkit/js reports replays, and throws its own errors', async () => {
  const client = toEmitKit(await newProject(server, { limit: 3 }))
  const event = { channelName: 'c', title: 't' }
  const first = await client.events.create(event, { idempotencyKey: 'order-1' })
  const second = await client.events.create(event, { idempotencyKey: 'order-1' })
  expect([first.wasReplayed, second.wasReplayed]).toEqual([false, true])
  expect([second.data, second.requestId]).toEqual([first.data, first.requestId])
  const error = await catchError(client.events.create({ title: 't' } as never))
  expect(error).toBeInstanceOf(ValidationError)
  expect(error).toMatchObject({
    message: 'Validation error',
    statusCode: 400,
    validationErrors: [{ path: ['channelName'], message: 'Required' }],
  })
  const late = await catchError(client.identify({ user_id: 'ada' }))
  expect(late).toBeInstanceOf(RateLimitError)
  expect(late).toMatchObject({ statusCode: 429, rateLimit: { limit: 3, remaining: 0 } })
  expect(late).toHaveProperty('requestId', expect.stringMatching(/^[0-9a-f-]{36}$/))
  const refused = await catchError(toEmitKit({ key: 'emitkit_wrong' }).identify({ user_id: 'ada' }))
  expect(refused).toBeInstanceOf(EmitKitError)
  expect(refused).toMatchObject({ statusCode: 401, message: 'Unauthorized' })
})

// The table of its fields is in test/log/events/new-event.test.ts.
test("contract §10 /v1/log accepts LogSnag's body", async () => {
  const { post } = await newProject(server)
  const log = { project: 'shop', channel: 'payments', event: 'New payment', parser: 'markdown' }
  const { status, body } = await post('/v1/log', { ...log, tags: { plan: 'pro' }, user_id: 'ada' })
  expect(status).toBe(201)
  expect(body.data).toMatchObject({
    ...{ channelName: 'payments', title: 'New payment', userId: 'ada', notify: false },
    ...{ metadata: { plan: 'pro' }, tags: ['plan:pro'] },
  })
})

test("contract §10 /v1/log reports errors under the names of LogSnag's fields", async () => {
  const { post } = await newProject(server)
  expectIssues(await post('/v1/log', {}), 'channel required', 'event required')
  const future = Date.now() / 1000 + 3600
  for (const timestamp of [future, -1, 1e300]) {
    const answer = await post('/v1/log', { channel: 'c', event: 'e', timestamp })
    expectIssues(answer, 'timestamp out_of_range')
  }
  const odd = await post('/v1/log', { channel: 'c', event: 'e', tags: ['x'], user_id: 7 })
  expectIssues(odd, 'tags invalid_type', 'user_id invalid_type')
})

test('contract §10 text becomes an event: its first line the title, a leading emoji the icon, the rest the description', async () => {
  const { request } = await newProject(server)
  const cases: [string, { title: string; icon: string | null; description: string | null }][] = [
    ['Backup done', { title: 'Backup done', icon: null, description: null }],
    [
      '💾 Backup done\nin 3 s\n\nBye\n',
      { title: 'Backup done', icon: '💾', description: 'in 3 s\n\nBye' },
    ],
    ['👨‍👩‍👧‍👦Family\r\nx\r\ny', { title: 'Family', icon: '👨‍👩‍👧‍👦', description: 'x\ny' }],
    ['\n  Padded  \n', { title: 'Padded', icon: null, description: null }],
    ['7 new users', { title: '7 new users', icon: null, description: null }],
    [
      '🚨 a=b&c=d + <b>100%25</b> %zz "ü"',
      { title: 'a=b&c=d + <b>100%25</b> %zz "ü"', icon: '🚨', description: null },
    ],
  ]
  for (const [body, expected] of cases) {
    // curl -d sends the form type by default, and encodes nothing.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const headers = { 'content-type': type }
      const answer = await request('/v1/channels/Big%20Ops', { method: 'POST', body, headers })
      expect(answer.status).toBe(201)
      expect(answer.body.data).toMatchObject({ channelName: 'Big Ops', notify: true, ...expected })
    }
  }
})

test('contract §10 text that is not a valid event is refused by the rules of events', async () => {
  const { request } = await newProject(server)
  const send = (path: string, body: string | Uint8Array<ArrayBuffer>, type = 'text/plain') =>
    request(path, { method: 'POST', body, headers: { 'content-type': type } })
  expectIssues(await send('/v1/channels/ops', ' \n '), 'title required')
  expectIssues(await send('/v1/channels/ops', 'x'.repeat(501)), 'title too_long')
  expectIssues(await send('/v1/channels/ops', `t\n${'x'.repeat(5001)}`), 'description too_long')
  expectIssues(await send('/v1/channels/%E2%80%AEops', 't'), 'name invalid_format')
  expectIssues(await send('/v1/channels/ops', new Uint8Array([0xff, 0xfe])), ' invalid_encoding')
  expect((await send('/v1/channels/ops', '{}', 'application/json')).status).toBe(415)
})

async function catchError(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  )
}

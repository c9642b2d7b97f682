import { expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { expectFailure } from '../../support/answers.ts'
import { withServer } from '../../support/servers/server.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'

const server = withServer()

test('contract §9 erasure removes identity, properties and aliases, and returns how many events named the user', async () => {
  const project = await newProject(server)
  await identify(project, 'ada', ['@ada', 'ada@example.com'], { city: 'London' })
  await identify(project, 'bob', ['@bob'])
  for (const userId of ['ada', '@ada', 'ada@example.com', 'bob', '@bob', null])
    await send(project, userId)

  const erased = await erase(project, 'ada')
  expect(erased.status).toBe(200)
  expect(erased.body.data).toEqual({
    userId: 'ada',
    events: 3,
    erasedAt: expect.any(String),
    erasedBy: { id: project.keyId, name: 'test' },
  })
  for (const name of ['ada', '@ada', 'ada@example.com']) {
    expectFailure(await project.get(`/v1/users/${name}`), 404, 'not_found')
    expect((await project.get(`/v1/events?userId=${name}`)).body.data.items).toEqual([])
  }
  const { items } = (await project.get('/v1/events')).body.data
  expect(items.map(toUserId)).toEqual([null, 'bob', 'bob', null, null, null])
  expect((await project.get('/v1/users/@bob')).body.data.userId).toBe('bob')
  expect(await listTraces(project, 'ada')).toEqual([])
})

test('contract §9 erasure nulls references in stored answers, which still replay', async () => {
  const project = await newProject(server)
  const quoted = `a"d\\a","userId":"bob`
  const content = {
    channelName: '"userId":"ada"',
    title: `"userId":${JSON.stringify(quoted)}`,
    metadata: { userId: quoted },
  }
  await identify(project, quoted, ['@ada'])
  const early = await send(project, 'late@example.com', 'late', content)
  await identify(project, quoted, ['late@example.com'])
  const sent = [
    [await send(project, quoted, 'own', content), 'own', quoted],
    [await send(project, '@ada', 'alias', content), 'alias', '@ada'],
    [early, 'late', 'late@example.com'],
  ] as const
  const other = await send(project, 'bob', 'other')

  expect((await erase(project, quoted)).body.data.events).toBe(3)
  for (const [first, key, userId] of sent) {
    const replay = await send(project, userId, key, content)
    expect(replay.headers.get('x-idempotent-replay')).toBe('true')
    expect(replay.body).toEqual({ ...first.body, data: { ...first.body.data, userId: null } })
  }
  expect((await send(project, 'bob', 'other')).text).toBe(other.text)
  expect(await listTraces(project, quoted)).toEqual([])
})

test('contract §9 erasure empties the stored answer to an identify', async () => {
  const project = await newProject(server)
  const body = { user_id: 'ada', properties: { city: 'London' }, aliases: ['@ada', 'ada'] }
  const keyed = { 'idempotency-key': 'k' }
  const first = await project.post('/v1/identify', body, keyed)
  await erase(project, 'ada')
  const replay = await project.post('/v1/identify', body, keyed)
  expect(replay.status).toBe(200)
  expect(replay.body).toEqual({
    ...first.body,
    data: { ...first.body.data, userId: null, properties: {}, aliases: { created: [] } },
  })
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  expectFailure(await project.get('/v1/users/ada'), 404, 'not_found')
  expect(await listTraces(project, 'London')).toEqual([])
})

test('contract §9 erasure removes the alias from stored answers of other users', async () => {
  const project = await newProject(server)
  await identify(project, 'ada', ['ada@example.com'])
  const body = { user_id: 'bob', properties: { x: 1 }, aliases: ['ada@example.com', '@bob', 'ada'] }
  const keyed = { 'idempotency-key': 'k' }
  const first = await project.post('/v1/identify', body, keyed)
  expect(first.body.data.aliases.failed).toHaveLength(2)
  await erase(project, 'ada')
  expect(await listTraces(project, 'ada')).toEqual([])
  const replay = await project.post('/v1/identify', body, keyed)
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  expect(replay.body.data).toMatchObject({ userId: 'bob', properties: { x: 1 } })
  expect(replay.body.data.aliases).toEqual({ created: ['@bob'] })
})

test('contract §9 erasure takes the exact user_id: an alias is 404 and changes nothing', async () => {
  const project = await newProject(server)
  await identify(project, 'ada', ['@ada'])
  const event = await send(project, '@ada')
  for (const name of ['@ada', 'ADA', ' ada', 'nobody']) {
    expectFailure(await erase(project, name), 404, 'not_found')
  }
  expect((await project.get(`/v1/events/${event.body.data.id}`)).body.data.userId).toBe('ada')
  expect((await project.get('/v1/users/@ada')).status).toBe(200)
})

test('contract §9 a repeated erasure says when and by which key the user was erased', async () => {
  const project = await newProject(server)
  const { token, id } = await createKey(server.sql, {
    projectId: project.id,
    name: 'eraser',
    scopes: ['identities:erase'],
  })
  await identify(project, 'ada', ['@ada'])
  await send(project, '@ada')
  const eraser = { ...project, ...createRequests(server.url, token) }
  const passed = countSeconds()
  const first = await erase(eraser, 'ada')
  expect(first.body.data.erasedBy).toEqual({ id, name: 'eraser' })
  const [row] = await server.sql<[{ age_s: number }]>`
    select extract(epoch from now() - ${first.body.data.erasedAt}::timestamptz)::float8 as age_s
  `
  expect(row.age_s).toBeWithin(0, passed())
  const again = await erase(project, 'ada')
  expect([again.status, again.body.data]).toEqual([200, first.body.data])
  for (const name of ['@ada', 'ADA']) expectFailure(await erase(project, name), 404, 'not_found')
  const other = await newProject(server)
  expectFailure(await erase(other, 'ada'), 404, 'not_found')

  // A later user with the same name has an erasure of their own.
  await identify(project, 'ada', [])
  const second = await erase(project, 'ada')
  expect(second.body.data).toMatchObject({ events: 0, erasedBy: { id: project.keyId } })
  expect(second.body.data.erasedAt > first.body.data.erasedAt).toBe(true)
})

test("contract §9 erasure keeps an alias that is another user's user_id", async () => {
  const project = await newProject(server)
  await identify(project, 'ada', ['bob'])
  await identify(project, 'bob', [])
  const event = await send(project, 'bob', 'k')
  expect((await erase(project, 'ada')).body.data.events).toBe(0)
  expect((await project.get(`/v1/events/${event.body.data.id}`)).body.data.userId).toBe('bob')
  expect((await send(project, 'bob', 'k')).text).toBe(event.text)
  expect((await project.get('/v1/users/bob')).body.data.userId).toBe('bob')
})

function identify({ post }: TestProject, userId: string, aliases: string[], properties?: object) {
  return post('/v1/identify', { user_id: userId, aliases, properties })
}

function send({ post }: TestProject, userId: string | null, key?: string, content = {}) {
  const body = { channelName: 'c', title: 't', ...content, userId }
  return post('/v1/events', body, key === undefined ? {} : { 'idempotency-key': key })
}

function erase({ request }: TestProject, userId: string) {
  return request(`/v1/users/${encodeURIComponent(userId)}`, { method: 'DELETE' })
}

function toUserId({ userId }: { userId: string | null }): string | null {
  return userId
}

// An id may contain a short name by chance.
const IDS = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[a-z]{3}_[0-9a-z]{26}/g

/** Returns the tables of the project in which `text` occurs. */
async function listTraces({ id }: TestProject, text: string): Promise<string[]> {
  const rows = await server.sql<{ place: string; row: string }[]>`
    select 'events' as place, e::text as row from events e where e.project_id = ${id}
    union all select 'identities', i::text from identities i where i.project_id = ${id}
    union all select 'aliases', a::text from aliases a where a.project_id = ${id}
    union all select 'answers', concat(k.user_id, k.other_names, k.body) from idempotency_keys k where k.project_id = ${id}
  `
  return rows.filter(({ row }) => row.replace(IDS, '').includes(text)).map(({ place }) => place)
}

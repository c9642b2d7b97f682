import { afterAll, beforeAll, expect, test } from 'bun:test'
import { boot, type Booted } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'

let server: Booted
beforeAll(async () => {
  server = await boot()
})
afterAll(() => server[Symbol.asyncDispose]())

test('§4.1.5 after an alias is created, it can be used as userId of events', async () => {
  const { post, get } = await newProject(server)
  await post('/v1/identify', { user_id: 'ada', aliases: ['@ada'] })
  const plain = await send(post, '@ada')
  const keyed = await send(post, '@ada', { 'idempotency-key': 'k' })
  for (const event of [plain, keyed]) {
    expect(event.userId).toBe('ada')
    expect((await get(`/v1/events/${event.id}`)).body.data).toEqual(event)
  }
})

test('contract §3 an alias that is added later also attributes earlier events', async () => {
  const { post, get } = await newProject(server)
  const event = await send(post, '@ada')
  expect(event.userId).toBe('@ada')
  await post('/v1/identify', { user_id: 'ada', aliases: ['@ada'] })
  expect((await get(`/v1/events/${event.id}`)).body.data.userId).toBe('ada')
  const { items } = (await get('/v1/events?userId=ada')).body.data
  expect(items).toEqual([{ ...event, userId: 'ada' }])
})

test('contract §3 an exact user_id always wins over an alias', async () => {
  const { post, get } = await newProject(server)
  await post('/v1/identify', { user_id: 'ada', aliases: ['bob'] })
  const before = await send(post, 'bob')
  expect(before.userId).toBe('ada')
  await post('/v1/identify', { user_id: 'bob' })
  const after = await send(post, 'bob')
  expect(after.userId).toBe('bob')
  expect((await get(`/v1/events/${before.id}`)).body.data.userId).toBe('bob')
  expect((await get('/v1/users/bob')).body.data.userId).toBe('bob')
  expect((await get('/v1/events?userId=ada')).body.data.items).toEqual([])
  expect((await get('/v1/events?userId=bob')).body.data.items).toHaveLength(2)
})

test('contract §3 an unknown userId is accepted and kept as sent', async () => {
  const { post, get } = await newProject(server)
  const event = await send(post, ' Nobody ')
  expect(event.userId).toBe(' Nobody ')
  expect((await get(`/v1/events/${event.id}`)).body.data.userId).toBe(' Nobody ')
  expect((await get('/v1/users/%20Nobody%20')).status).toBe(404)
  expect((await send(post, null)).userId).toBeNull()
})

test('contract §2 references are compared exactly', async () => {
  const { post, get } = await newProject(server)
  await post('/v1/identify', { user_id: 'ada', aliases: ['@ada'] })
  for (const reference of ['Ada', 'ada ', '@ADA', ' @ada']) {
    expect((await send(post, reference)).userId).toBe(reference)
  }
  expect((await get('/v1/events?userId=@ada')).body.data.items).toEqual([])
})

async function send(
  post: (path: string, json: unknown, headers?: Record<string, string>) => Promise<{ body: any }>,
  userId: string | null,
  headers: Record<string, string> = {},
) {
  const { body } = await post('/v1/events', { channelName: 'c', title: 't', userId }, headers)
  return body.data
}

test('contract §9 users named . and .. are read and erased by a parameter', async () => {
  const { post, get, request } = await newProject(server)
  for (const userId of ['.', '..', 'a/b?c']) {
    await post('/v1/identify', { user_id: userId, aliases: [`alias of ${userId}`] })
    await post('/v1/events', { channelName: 'c', title: 't', userId })
    const name = (text: string) => `/v1/users?userId=${encodeURIComponent(text)}`
    expect((await get(name(`alias of ${userId}`))).body.data).toMatchObject({ userId })
    const erased = await request(name(userId), { method: 'DELETE' })
    expect(erased.body.data).toMatchObject({ userId, events: 1 })
    expect((await get(name(userId))).status).toBe(404)
  }
})

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { newProject, type TestProject } from '../../support/project.ts'
import { newFullTenant, type FullTenant } from '../../support/full-tenant.ts'
import { boot, type Booted } from '../../support/server.ts'

// Attacks on another tenant's data: by cursors, by text in filters, and by fields that callers may
// not set.
//
// Covered elsewhere: ids of another tenant in every place of every route, in queries and in bodies
// (api/tenants-management, api/tenants-v1), sockets (api/feed-guards), tags that imitate tokens of
// the index (api/search).

setDefaultTimeout(60_000)

let server: Booted
let own: TestProject
let other: FullTenant
beforeAll(async () => {
  server = await boot()
  own = await newProject(server)
  other = await newFullTenant(server)
  for (let n = 0; n < 3; n++) {
    await own.post('/v1/events', {
      channelName: 'payments',
      title: `mine ${'xyz'[n]}`,
      userId: `u${n}`,
    })
    await own.post('/v1/identify', { user_id: `u${n}` })
  }
})
afterAll(() => server[Symbol.asyncDispose]())

const LISTS = ['/v1/events', '/v1/channels']

test("a cursor works in the caller's own log alone, wherever it came from", async () => {
  const theirs = await newProject(server)
  for (let n = 0; n < 3; n++) {
    await theirs.post('/v1/events', { channelName: `theirs ${n}`, title: `theirs ${n}` })
  }
  for (const list of LISTS) {
    const { nextCursor } = (await theirs.get(`${list}?limit=1`)).body.data
    expect(nextCursor).toBeString()
    const page = await own.get(`${list}?cursor=${nextCursor}`)
    expect(page.status).toBe(200)
    expect(page.text).not.toContain('theirs')
  }
})

const encode = (text: string) => Buffer.from(text).toString('base64url')

test.each([
  '<0 or true',
  '<1;select 1',
  '<-1',
  '<99999999999999999999',
  '>1e3',
  '<1\n',
  '<１',
  '{"seq":1}',
  '',
])('a forged cursor is a 400: %j', async text => {
  for (const list of LISTS) {
    for (const cursor of [encode(text), `${encode(text)}==`, text]) {
      if (cursor === '') continue
      expect((await own.get(`${list}?cursor=${encodeURIComponent(cursor)}`)).status).toBe(400)
    }
  }
})

const INJECTIONS = [
  "' or 1=1 --",
  "'; drop table events; --",
  '%',
  '_',
  '\\',
  '%%%',
  '*',
  ':*',
  '!mine',
  'nothing | mine',
  "'mine':*",
  '(mine)',
  '<->',
  '$1',
  '{u0}',
  '","u0',
  '\u{10ffff}',
  '🦊',
]

test('filter values are text and cannot widen the query', async () => {
  const session = (path: string) =>
    other.people.owner.get(`/api/projects/${other.params['projectId']}${path}`)
  for (const text of INJECTIONS) {
    const value = encodeURIComponent(text)
    for (const name of ['channel', 'tag', 'userId', 'source']) {
      const page = await own.get(`/v1/events?${name}=${value}`)
      expect([text, name, page.status, page.body.data?.items]).toEqual([text, name, 200, []])
    }
    // Words are matched by their letters alone.
    const words = await own.get(`/v1/events?text=${value}`)
    expect([text, words.status]).toEqual([text, 200])
    for (const { title } of words.body.data.items) expect(text).toContain(title.split(' ')[0])
    for (const path of [`/users?search=${value}`, `/channels?search=${value}`]) {
      const { status, body } = await session(path)
      expect([path, status, body.data.items]).toEqual([path, 200, []])
    }
    for (const name of ['channel', 'user', 'source', 'tag']) {
      const quoted = encodeURIComponent(`${name}:"${text.replace(/["\\]/g, '\\$&')}"`)
      const { status, body } = await session(`/events?q=${quoted}`)
      expect([text, name, status, body.data?.items]).toEqual([text, name, 200, []])
    }
    const meta = await session(`/events?q=${encodeURIComponent(`meta:"secret=${text}"`)}`)
    expect(meta.body.data?.items ?? []).toEqual([])
  }
  expect((await own.get('/v1/events')).body.data.items).toHaveLength(3)
})

test("an event and a user belong to the caller's project, with any other fields", async () => {
  const { projectId, organizationId, channelId, eventId } = other.params
  const foreign = {
    projectId,
    project_id: projectId,
    organizationId,
    channelId,
    id: eventId,
    seq: 1,
    createdAt: '2000-01-01T00:00:00Z',
    ['__proto__']: { projectId },
    constructor: { prototype: { projectId } },
  }
  const event = await own.post('/v1/events', { channelName: 'c', title: 'mine', ...foreign })
  expect(event.status).toBe(201)
  expect(event.body.data).toMatchObject({ seq: 4, channelName: 'c' })
  expect(event.body.data.id).not.toBe(eventId)
  expect(event.body.data.channelId).not.toBe(channelId)
  const user = await own.post('/v1/identify', { user_id: other.params['userId'], ...foreign })
  expect(user.status).toBe(200)
  // The same name in another project is another user.
  const alias = { user_id: 'u0', aliases: [other.params['alias']] }
  expect((await own.post('/v1/identify', alias)).body.data.aliases.failed).toBeUndefined()
  const theirs = await other.people.owner.get(
    `/api/projects/${projectId}/users/${other.params['userId']}`,
  )
  expect(theirs.body.data).toMatchObject({ userId: other.params['userId'], events: 1 })
})

import { expect, test } from 'bun:test'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { withServer } from '../../support/servers/server.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'

const server = withServer()

test('contract §9 events are listed newest first, 50 per page by default', async () => {
  const project = await newProject(server)
  const sent = await sendMany(project, 60)
  const first = await project.get('/v1/events')
  expect(first.status).toBe(200)
  expect(first.body.data.items).toEqual(sent.toReversed().slice(0, 50))
  const few = (await project.get('/v1/events?limit=3')).body.data
  expect(few.items.map(toSeq)).toEqual([60, 59, 58])
  const empty = await newProject(server)
  expect((await empty.get('/v1/events')).body.data).toEqual({
    items: [],
    nextCursor: null,
    completeAfter: 0,
  })
})

test('contract §9 the cursor pages backward through every event once during appends', async () => {
  const project = await newProject(server)
  await sendMany(project, 45)
  const pages = await readPages(project, '/v1/events?limit=10', () => sendMany(project, 3))
  expect(pages.map(page => page.length)).toEqual([10, 10, 10, 10, 5])
  expect(pages.flat().map(toSeq)).toEqual(countDown(45))
})

test('contract §9 after pages forward in log order, including appended events', async () => {
  const project = await newProject(server)
  await sendMany(project, 20)
  let rounds = 0
  const pages = await readPages(project, '/v1/events?after=5&limit=7', async () => {
    if (rounds++ < 2) await sendMany(project, 4)
  })
  expect(pages.flat().map(toSeq)).toEqual(countDown(28).reverse().slice(5))
  expect((await project.get('/v1/events?after=0&limit=1')).body.data.items.map(toSeq)).toEqual([1])
  expect((await project.get('/v1/events?after=28')).body.data).toEqual({
    items: [],
    nextCursor: null,
    completeAfter: 0,
  })
})

test('contract §4 readers that page during concurrent appends see seqs in order', async () => {
  const project = await newProject(server)
  const writing = Promise.all(Array.from({ length: 8 }, () => sendMany(project, 25)))
  const seen: number[] = []
  let isDone = false
  void writing.then(() => (isDone = true))
  while (!isDone || seen.length < 200) {
    const { items } = (await project.get(`/v1/events?after=${seen.length}&limit=100`)).body.data
    seen.push(...items.map(toSeq))
  }
  expect(seen).toEqual(countDown(200).reverse())
})

test('contract §9 a page that ends with the last event has no next cursor', async () => {
  const project = await newProject(server)
  await sendMany(project, 4)
  const all = (await project.get('/v1/events?limit=4')).body.data
  expect([all.items.length, all.nextCursor]).toEqual([4, null])
  const forward = (await project.get('/v1/events?after=0&limit=4')).body.data
  expect([forward.items.length, forward.nextCursor]).toEqual([4, null])
})

test('contract §9 a page of large events ends early, and its cursor continues there', async () => {
  const project = await newProject(server)
  const metadata = { text: 'é'.repeat(100_000) }
  for (let n = 1; n <= 12; n++)
    await project.post('/v1/events', { channelName: 'large', title: `Large ${n}`, metadata })
  const expected = countDown(12)
  for (const filter of ['', 'channel=large', 'text=large', 'text=large&from=2020-01-01T00:00:00Z'])
    for (const start of ['', 'after=0']) {
      const read: number[][] = []
      let position: string | null = start
      while (position !== null) {
        const { body } = await project.get(`/v1/events?limit=100&${filter}&${position}`)
        expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(1.1 * 1024 * 1024)
        read.push(body.data.items.map(toSeq))
        position = body.data.nextCursor && `cursor=${body.data.nextCursor}`
      }
      const seqs = start === '' ? expected : expected.toReversed()
      const pages = [seqs.slice(0, 5), seqs.slice(5, 10), seqs.slice(10)]
      expect([filter, ...read]).toEqual([filter, ...pages])
    }
})

test('contract §9 a cursor is opaque, keeps its direction and is validated', async () => {
  const project = await newProject(server)
  await sendMany(project, 3)
  for (const path of ['/v1/events?limit=1', '/v1/events?after=0&limit=1']) {
    const { nextCursor } = (await project.get(path)).body.data
    expect(nextCursor).toMatch(/^[\w-]+$/)
    expect((await project.get(`/v1/events?cursor=${nextCursor}`)).body.data.items).toHaveLength(2)
  }
  for (const cursor of ['x', 'PDE=', '<2', 'PC0x', '%00', 'x'.repeat(101), 'Ijx', 'PDAwMDE']) {
    const answer = await project.get(`/v1/events?cursor=${cursor}`)
    expect(answer.status).toBe(400)
    expect(answer.body.details[0].path).toEqual(['cursor'])
  }
  expect((await project.get('/v1/events?cursor=')).body.details[0].path).toEqual(['cursor'])
})

test('contract §9 a bad query parameter is a 400 whose path is its name', async () => {
  const { get } = await newProject(server)
  const refused: [string, string][] = [
    ['limit=0', 'limit out_of_range'],
    ['limit=101', 'limit out_of_range'],
    ['limit=ten', 'limit invalid_type'],
    ['limit=1.5', 'limit invalid_type'],
    ['limit=', 'limit invalid_type'],
    ['limit=99999999999999999999', 'limit out_of_range'],
    ['after=-1', 'after out_of_range'],
    ['after=9007199254740993', 'after out_of_range'],
    ['after=1e3', 'after invalid_type'],
    ['from=yesterday', 'from invalid_format'],
    ['to=2026-11-20T09:30:00', 'to invalid_format'],
    ['from=2026-02-30', 'from invalid_format'],
    ['channel=', 'channel too_short'],
    [`tag=${'x'.repeat(51)}`, 'tag too_long'],
    [`userId=${'x'.repeat(256)}`, 'userId too_long'],
    ['source=%00', 'source invalid_encoding'],
    [`text=${'x'.repeat(201)}`, 'text too_long'],
    ['tag=a&tag=b', 'tag invalid_value'],
  ]
  for (const [query, issue] of refused) expectIssues(await get(`/v1/events?${query}`), issue)
  expectIssues(await get('/v1/channels?limit=0'), 'limit out_of_range')
  expectIssues(await get('/v1/channels?cursor=evt_1'), 'cursor invalid_format')
  const several = await get('/v1/events?limit=0&after=x&tag=a&tag=b')
  expect(several.body.details.map(({ path }: { path: string[] }) => path[0]).sort()).toEqual([
    'after',
    'limit',
    'tag',
  ])
})

test('contract §9 an event is found by its id, as it was answered', async () => {
  const project = await newProject(server)
  const [event] = await sendMany(project, 1)
  expect((await project.get(`/v1/events/${event?.id}`)).body.data).toEqual(event)
  for (const id of [
    'evt_',
    'x',
    'evt_01kadz5p6vf2w8y3m4n5q6r7s8',
    'evt_ffffffffffffffffffffffffff',
    '%00',
  ]) {
    const answer = await project.get(`/v1/events/${id}`)
    if (answer.status !== 400) expectFailure(answer, 404, 'not_found')
  }
})

test('contract §9 channels are listed newest first, with their first spelling and icon', async () => {
  const project = await newProject(server)
  for (const [channelName, icon] of [
    ['Big Payments', '💰'],
    ['BIG  payments', '🦊'],
    ['Ops', undefined],
  ]) {
    await project.post('/v1/events', { channelName, title: 't', icon })
  }
  const { items, nextCursor } = (await project.get('/v1/channels')).body.data
  expect(items).toEqual([
    { id: expect.stringMatching(/^chn_/), name: 'Ops', icon: null, createdAt: expect.any(String) },
    {
      id: expect.stringMatching(/^chn_/),
      name: 'Big Payments',
      icon: '💰',
      createdAt: expect.any(String),
    },
  ])
  expect(nextCursor).toBeNull()
  for (let n = 0; n < 20; n++)
    await project.post('/v1/events', { channelName: `n ${n}`, title: 't' })
  const pages = await readPages(project, '/v1/channels?limit=6')
  expect(pages.map(page => page.length)).toEqual([6, 6, 6, 4])
  expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(22)
})

test('contract §9 a user is found by user_id and by every alias, with all aliases', async () => {
  const { post, get } = await newProject(server)
  const { data } = (await post('/v1/identify', { user_id: 'a/b c', properties: { x: 1 } })).body
  await post('/v1/identify', { user_id: 'a/b c', aliases: ['@ada', 'ada@example.com'] })
  for (const name of ['a/b c', '@ada', 'ada@example.com']) {
    expect((await get(`/v1/users/${encodeURIComponent(name)}`)).body.data).toEqual({
      id: data.id,
      userId: 'a/b c',
      properties: { x: 1 },
      aliases: ['@ada', 'ada@example.com'],
      createdAt: data.updatedAt,
      updatedAt: expect.any(String),
    })
  }
  expectFailure(await get('/v1/users/nobody'), 404, 'not_found')
  expect((await get('/v1/users/%00')).status).toBe(400)
  expectIssues(await get('/v1/users/%ff'), 'userId invalid_encoding')
})

test('contract §9 me returns organization, project, key, limit and scopes, with any key', async () => {
  const { get, keyId } = await newProject(server, { limit: 7, scopes: ['events:write'] })
  expect((await get('/v1/me')).body.data).toEqual({
    organization: { id: expect.stringMatching(/^org_/), name: 'Test organization' },
    project: { id: expect.stringMatching(/^prj_/), name: 'Test project' },
    key: { id: keyId, name: 'test', limit: 7, scopes: ['events:write'], expiresAt: null },
  })
})

/** Sends events one after another; returns the answers. */
async function sendMany({ post }: TestProject, count: number) {
  const events: { id: string; seq: number }[] = []
  for (let n = 0; n < count; n++) {
    events.push((await post('/v1/events', { channelName: 'c', title: `Event ${n}` })).body.data)
  }
  return events
}

/** Follows the cursor to the end; `meanwhile` runs after each page. */
async function readPages(
  project: TestProject,
  path: string,
  meanwhile: () => Promise<unknown> = async () => {},
) {
  const pages: { id: string; seq: number }[][] = []
  for (let cursor = ''; ;) {
    const { status, body } = await project.get(`${path}${cursor}`)
    expect(status).toBe(200)
    pages.push(body.data.items)
    await meanwhile()
    if (body.data.nextCursor === null) return pages
    cursor = `&cursor=${body.data.nextCursor}`
  }
}

function toSeq({ seq }: { seq: number }): number {
  return seq
}

/** Counts from `count` down to 1. */
function countDown(count: number): number[] {
  return Array.from({ length: count }, (_, n) => count - n)
}

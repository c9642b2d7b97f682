import { beforeAll, expect, test } from 'bun:test'
import postgres from 'postgres'
import { expectIssues } from '../../support/answers.ts'
import { splitEventTexts } from '../../../src/log/events/event-json.ts'
import { listEventsJson } from '../../../src/log/events/read.ts'
import { toListFilters } from '../../../src/log/events/search-schema.ts'
import { parseId } from '../../../src/base/ids.ts'
import { type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { withSharedServer } from '../../support/servers/server.ts'

const server = withSharedServer()
let viewer: SignedInAccount
let base: string
const ids: string[] = []

beforeAll(async () => {
  const tenant = await newTenant(server, 'viewer')
  ;({ account: viewer, path: base } = tenant)
  for (let n = 1; n <= 12; n++) {
    const event = {
      channelName: n % 3 === 0 ? 'ops' : 'payments',
      title: n % 2 === 0 ? `Payment ${n} received` : `Backup ${n} failed`,
      tags: n % 4 === 0 ? ['vip'] : [],
      timestamp: `2026-03-01T${String(n).padStart(2, '0')}:30:00Z`,
    }
    ids.push((await tenant.send(event)).id)
  }
})

test('dashboard §3 the range of the histogram narrows the list', async () => {
  const range = 'from=2026-03-01T04:00:00Z&to=2026-03-01T07:00:00Z'
  const { body } = await viewer.get(`${base}/events?${range}`)
  expect(body.data.items.map(({ seq }: any) => seq)).toEqual([6, 5, 4])
  const histogram = await viewer.get(`${base}/histogram?${range}`)
  expect(histogram.body.data.total).toBe(3)
})

test('dashboard §5 an event has a page with its neighbours', async () => {
  const { body } = await viewer.get(`${base}/events/${ids[4]}`)
  expect(body.data.title).toBe('Backup 5 failed')
  const around = await viewer.get(`${base}/events/${ids[4]}/neighbours`)
  expect(around.body.data).toEqual({
    older: { id: ids[3], seq: 4 },
    newer: { id: ids[5], seq: 6 },
  })
  const last = await viewer.get(`${base}/events/${ids[11]}/neighbours`)
  expect(last.body.data.newer).toBeNull()
})

test('a page of /api is compressed if the browser accepts it', async () => {
  const answer = (encoding: string) =>
    viewer.request(`${base}/events`, { headers: { 'accept-encoding': encoding } })
  const lengths: number[] = []
  for (const [accepted, coding] of [
    ['identity', null],
    ['gzip, br', 'gzip'],
    ['gzip;q=0', null],
  ] as const) {
    const { headers, body } = await answer(accepted)
    expect([accepted, headers.get('content-encoding')]).toEqual([accepted, coding])
    expect(headers.get('vary')).toContain('Accept-Encoding')
    expect(body.data.items).toHaveLength(12)
    lengths.push(Number(headers.get('content-length')))
  }
  expect(lengths[1]).toBeLessThan(lengths[0]! / 3)
})

test('a large page of /api is compressed while it is sent', async () => {
  const tenant = await newTenant(server, 'member')
  const text = Array.from({ length: 60_000 }, (_, at) => at)
    .join(' ')
    .slice(0, 200_000)
  await tenant.send({ metadata: { text } })
  const { headers, body } = await tenant.account.get(`${tenant.path}/events`)
  expect(headers.get('content-encoding')).toBe('gzip')
  expect(body.data.items[0].metadata.text).toBe(text)
})

test('a page whose first statement is canceled is read in smaller batches', async () => {
  const projectId = parseId('prj', base.split('/').at(-1) ?? '') ?? ''
  let canceled = 0
  const sql = new Proxy(server.sql, {
    apply(target, self, args: [TemplateStringsArray]) {
      if (!args[0].join('').includes('list_events')) return Reflect.apply(target, self, args)
      canceled++
      return Promise.reject(
        Object.assign(new postgres.PostgresError('canceled' as never), { code: '57014' }),
      )
    },
  })
  const filters = toListFilters({ tag: 'vip' })
  const page = JSON.parse(await listEventsJson(sql, projectId, filters, { limit: 2 }))
  expect(page.items.map(({ seq }: any) => seq)).toEqual([12, 8])
  expect([canceled, page.nextCursor]).toEqual([1, expect.any(String)])
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
  // A page that ends with the last event has no next cursor.
  for (const query of ['after=25&limit=3', 'limit=28']) {
    expect((await project.get(`/v1/events?${query}`)).body.data.nextCursor).toBeNull()
  }
  expect((await project.get('/v1/events?after=28')).body.data).toEqual({
    items: [],
    nextCursor: null,
    completeAfter: 0,
  })
})

test('contract §9 a page of large events ends early, and its cursor continues there', async () => {
  const project = await newProject(server)
  const metadata = { text: 'é'.repeat(100_000) }
  for (let n = 1; n <= 12; n++)
    await project.post('/v1/events', { channelName: 'large', title: `Large ${n}`, metadata })
  const expected = countDown(12)
  for (const filter of ['', 'text=large&from=2020-01-01T00:00:00Z'])
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

test('contract §9 the bytes of a page include urls', async () => {
  const project = await newProject(server)
  const url = `https://example.com/${'é'.repeat(2_000)}`
  for (let n = 1; n <= 4; n++) await send(project, { title: `${n}`, url })
  const [row] = await server.sql<[{ texts: string }]>`
    select texts
    from list_events(
      project => ${project.id}, by_channel_id => null, by_channel_slug => null, sources => null, tags => null,
      start_seq => 0, is_newest_first => false, batch => 4, page => 4, max_bytes => 8000
    )
  `
  expect(splitEventTexts(row.texts).texts).toHaveLength(2)
})

test('contract §9 all bad query parameters are named at once', async () => {
  const { get } = await newProject(server)
  const { status, body } = await get('/v1/events?limit=0&after=x&tag=a&tag=b')
  expect(status).toBe(400)
  const issues = body.details.map(({ path, code }: { path: string[]; code: string }) =>
    [...path, code].join(' '),
  )
  expect(issues.toSorted()).toEqual([
    'after invalid_type',
    'limit out_of_range',
    'tag invalid_value',
  ])
  expectIssues(await get(`/v1/events?text=${'a '.repeat(21)}`), 'text too_many')
})

test('contract §9 the filter channel accepts a name in any spelling, or an id', async () => {
  const project = await newProject(server)
  await send(project, { channelName: 'Big Payments', title: 'a' })
  const { channelId } = await send(project, { channelName: 'big  payments', title: 'b' })
  await send(project, { channelName: 'C++', title: 'c' })
  for (const channel of ['Big Payments', 'big \t payments', ' BIG payments ', channelId]) {
    expect(await find(project, { channel })).toEqual(['b', 'a'])
  }
  expect(await find(project, { channel: 'c++' })).toEqual(['c'])
  for (const channel of ['c', 'C#', 'big', 'big_payments', 'chn_01kadz5p6vf2w8y3m4n5q6r7s8']) {
    expect(await find(project, { channel })).toEqual([])
  }
})

test('contract §9 from and to bound the timestamp inclusively, in any time zone', async () => {
  const project = await newProject(server)
  // Lists are in the order of the log, whatever the timestamps.
  for (const day of ['02', '01', '03']) {
    await send(project, { title: day, timestamp: `2026-03-${day}T12:00:00Z` })
  }
  await send(project, { title: 'now' })
  expect(await find(project, { from: '2026-03-02T12:00:00Z' })).toEqual(['now', '03', '02'])
  expect(await find(project, { from: '2026-03-02T12:00:00.001Z' })).toEqual(['now', '03'])
  expect(await find(project, { to: '2026-03-02T13:59:59+02:00' })).toEqual(['01'])
  expect(await find(project, { from: '2026-03-02', to: '2026-03-03' })).toEqual(['02'])
  expect(await find(project, { from: '2026-03-03', to: '2026-03-02' })).toEqual([])
  expect(await find(project, { from: '0100-01-01T00:00:00Z', to: '2026-03-02' })).toEqual(['01'])
  for (const edge of ['0001-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59']) {
    for (const name of ['from', 'to']) {
      const { status } = await project.get(`/v1/events?${new URLSearchParams({ [name]: edge })}`)
      expect([edge, name, [200, 400].includes(status)]).toEqual([edge, name, true])
    }
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

test('contract §9 me returns organization, project, key, limit and scopes, with any key', async () => {
  const { get, keyId } = await newProject(server, { limit: 7, scopes: ['events:write'] })
  expect((await get('/v1/me')).body.data).toEqual({
    organization: { id: expect.stringMatching(/^org_/), name: 'Test organization' },
    project: { id: expect.stringMatching(/^prj_/), name: 'Test project' },
    key: { id: keyId, name: 'test', limit: 7, scopes: ['events:write'], expiresAt: null },
  })
})

async function send({ post }: TestProject, event: Record<string, unknown>) {
  const { status, body } = await post('/v1/events', { channelName: 'c', ...event })
  expect(status).toBe(201)
  return body.data
}

/** Returns the titles of the matching events. */
async function find({ get }: TestProject, query: Record<string, string>): Promise<string[]> {
  const { status, body } = await get(`/v1/events?${new URLSearchParams(query)}`)
  expect(status).toBe(200)
  return body.data.items.map(({ title }: { title: string }) => title)
}

/** Sends events one after another; returns the answers. */
async function sendMany(project: TestProject, count: number) {
  const events: { id: string; seq: number }[] = []
  for (let n = 0; n < count; n++) events.push(await send(project, { title: `Event ${n}` }))
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

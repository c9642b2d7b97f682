import { describe, expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { DEFAULT_RATE_LIMIT } from '../../../src/access/keys/keys.ts'
import { listRateHeaders } from '../../support/answers.ts'
import { revokeKey } from '../../support/worlds/keys.ts'
import { ageWindow } from '../../support/worlds/ageing.ts'
import { createRequests, newProject, type Answered } from '../../support/worlds/project.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { forFile } from '../../support/for-file.ts'

const server = withServer()
const more = [1, 2].map(() => forFile(() => boot({ databaseUrl: server.databaseUrl })))
/** Three processes on one database. */
const processes = [server, ...more]

test('case 18: requests 1 to 100 pass with Remaining 99 to 0, the 101st is refused, Reset does not move', async () => {
  const { get } = await newProject(server, { limit: DEFAULT_RATE_LIMIT })
  const passed = countSeconds()
  const nowSeconds = Date.now() / 1000
  const answers: Answered[] = []
  for (let n = 0; n < 103; n++) answers.push(await get('/v1/me'))
  expect(answers.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 100 }, () => 200),
    ...[429, 429, 429],
  ])
  expect(answers.map(toRemaining)).toEqual([
    ...Array.from({ length: 100 }, (_, n) => 99 - n),
    ...[0, 0, 0],
  ])
  expect(new Set(answers.map(({ headers }) => headers.get('x-ratelimit-limit')))).toEqual(
    new Set(['100']),
  )
  const resets = new Set(answers.map(toReset))
  expect(resets.size).toBe(1)
  const [reset = 0] = resets
  expect(reset - nowSeconds).toBeWithin(59, 61 + passed())
})

test('contract §6 every authenticated request counts, refused ones and replays included', async () => {
  const project = await newProject(server, { limit: 20, scopes: ['events:write'] })
  const { post, get, request } = project
  const keyed = { 'idempotency-key': 'k' }
  const answers = [
    await post('/v1/events', event, keyed),
    await post('/v1/events', event, keyed),
    await post('/v1/events', { ...event, title: 'other' }, keyed),
    await post('/v1/events', {}),
    await request('/v1/events', {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'text/html' },
    }),
    await post('/v1/events', { text: 'x'.repeat(256 * 1024) }),
    await post('/v1/identify', { user_id: 'ada' }),
    await get('/v1/me?key=twice&key=twice'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 422, 400, 415, 413, 403, 400])
  expect(answers.map(toRemaining)).toEqual([19, 18, 17, 16, 15, 14, 13, 12])
})

test('contract §1 requests that are refused before the rate limit do not count and lack its headers', async () => {
  const { get, request } = await newProject(server, { limit: 2 })
  const early = [
    await request('/v1/nothing'),
    await request('/v1/me', { method: 'POST' }),
    await createRequests(server.url, 'wrong').get('/v1/me'),
  ]
  expect(early.map(({ status }) => status)).toEqual([404, 405, 401])
  for (const { headers } of early) expect(headers.get('x-ratelimit-limit')).toBeNull()
  expect(toRemaining(await get('/v1/me'))).toBe(1)
})

test('contract §6 the window starts with the first request, and 429s do not extend it', async () => {
  const { get, keyId } = await newProject(server, { limit: 2 })
  const first = toReset(await get('/v1/me'))
  await ageWindow(server.sql, keyId, '40 s')
  const second = await get('/v1/me')
  expect(toReset(second)).toBe(first - 40)
  for (let n = 0; n < 3; n++) {
    const refused = await get('/v1/me')
    expect(refused.status).toBe(429)
    expect(toReset(refused)).toBe(first - 40)
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(20)
  }
  await ageWindow(server.sql, keyId, '10 s')
  expect((await get('/v1/me')).status).toBe(429)
  await ageWindow(server.sql, keyId, '10 s')
  const fresh = await get('/v1/me')
  expect(fresh.status).toBe(200)
  expect(toRemaining(fresh)).toBe(1)
  expect(toReset(fresh)).toBeGreaterThanOrEqual(first)
})

test('case 18: of 101 requests over three processes exactly 100 pass', async () => {
  const { key, keyId } = await newProject(server, { limit: 100 })
  const clients = processes.map(({ url }) => createRequests(url, key))
  const race = async (count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => clients[n % 3]!.get('/v1/me')))
  expectExactly(100, await race(101))
  await ageWindow(server.sql, keyId, '60 s')
  expectExactly(100, await race(120))
})

test('contract §6 concurrent use of many keys by several processes does not deadlock', async () => {
  const projects = await Promise.all(
    Array.from({ length: 20 }, () => newProject(server, { limit: 100 })),
  )
  const answers = await Promise.all(
    processes.flatMap(({ url }, place) =>
      (place % 2 ? projects : projects.toReversed()).flatMap(({ key }) =>
        Array.from({ length: 4 }, () => createRequests(url, key).get('/v1/me')),
      ),
    ),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  const last = await Promise.all(projects.map(({ get }) => get('/v1/me')))
  expect(new Set(last.map(toRemaining))).toEqual(new Set([87]))
})

// The first request of a key is admitted by itself. Its next ones within a minute are counted in
// the transaction that appends their events.

const event = { channelName: 'payments', title: 'New payment' }
const tooLarge = new Uint8Array(256 * 1024 + 1).fill(0xff)

describe('contract §1 a key that was admitted recently keeps the order of checks:', () => {
  test('a revoked key before anything in the body', async () => {
    const { id, keyId, post, request } = await warm()
    await revokeKey(server.sql, id, keyId)
    for (const answer of [
      await request('/v1/events', { method: 'POST', body: tooLarge }),
      await post('/v1/events', { channelName: 1 }),
      await post('/v1/events', event),
      await post('/v1/events', event),
    ]) {
      expect(answer.status).toBe(401)
      expect(listRateHeaders(answer)).toEqual([])
    }
    expect(await countEvents(id)).toBe(1)
  })

  test('the rate limit before anything in the body', async () => {
    const { id, post, request } = await warm({ limit: 3 })
    expect((await post('/v1/events', event)).status).toBe(201)
    expect((await post('/v1/events', {})).status).toBe(400)
    expect((await post('/v1/events', {})).status).toBe(429)
    expect((await request('/v1/events', { method: 'POST', body: tooLarge })).status).toBe(429)
    expect((await post('/v1/events', event)).status).toBe(429)
    expect(await countEvents(id)).toBe(2)
  })
})

test('contract §6 of concurrent creates over three processes exactly as many as allowed are stored', async () => {
  const { id, key, keyId } = await newProject(server, { limit: 100 })
  const clients = processes.map(({ url }) => createRequests(url, key))
  for (const { post } of clients) expect((await post('/v1/events', event)).status).toBe(201)
  const race = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) => {
        const headers = n % 4 === 0 ? { 'Idempotency-Key': `race-${count}-${n}` } : {}
        return clients[n % 3]!.post('/v1/events', { ...event, channelName: `c ${n % 7}` }, headers)
      }),
    )
  const first = await race(150)
  expect(first.filter(({ status }) => status === 201)).toHaveLength(97)
  expect(first.filter(({ status }) => status === 429)).toHaveLength(53)
  expect(
    first
      .filter(({ status }) => status === 201)
      .map(toRemaining)
      .toSorted(ascending),
  ).toEqual(Array.from({ length: 97 }, (_, n) => n))
  await ageWindow(server.sql, keyId, '60 s')
  const second = await race(99)
  expect(second.every(({ status }) => status === 201)).toBe(true)
  const seqs = [...first, ...second].flatMap(({ body }) => body.data?.seq ?? [])
  expect(seqs.toSorted(ascending)).toEqual(Array.from({ length: 196 }, (_, n) => n + 4))
  expect(await countEvents(id)).toBe(199)
})

test('contract §5 requests that share the response of a running one count for themselves', async () => {
  const { id, post } = await warm({ limit: 20 })
  const send = () => post('/v1/events', event, { 'Idempotency-Key': 'shared' })
  const answers = await Promise.all(Array.from({ length: 10 }, send))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(answers.map(toRemaining).toSorted(ascending)).toEqual(
    Array.from({ length: 10 }, (_, n) => 9 + n),
  )
  expect(await countEvents(id)).toBe(2)
})

test('§5 requests of many projects share a transaction, and each gets its own outcome', async () => {
  const projects = await Promise.all(Array.from({ length: 8 }, () => warm({ limit: 6 })))
  await revokeKey(server.sql, projects[0]!.id, projects[0]!.keyId)
  const answers = await Promise.all(
    projects.map(({ post }) =>
      Promise.all(
        Array.from({ length: 7 }, (_, n) => post('/v1/events', { ...event, title: `t${n}` })),
      ),
    ),
  )
  for (const [index, ofProject] of answers.entries()) {
    const statuses = ofProject.map(({ status }) => status).toSorted(ascending)
    if (index === 0) expect(new Set(statuses)).toEqual(new Set([401]))
    else expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429])
    expect(await countEvents(projects[index]!.id)).toBe(index === 0 ? 1 : 6)
  }
})

function toRemaining({ headers }: Answered): number {
  return Number(headers.get('x-ratelimit-remaining'))
}

function toReset({ headers }: Answered): number {
  return Number(headers.get('x-ratelimit-reset'))
}

/** Expects that `count` answers passed, with each `Remaining` value once. */
function expectExactly(count: number, answers: Answered[]): void {
  const passed = answers.filter(({ status }) => status === 200)
  expect(passed).toHaveLength(count)
  expect(passed.map(toRemaining).sort((a, b) => a - b)).toEqual([...Array(count).keys()])
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]))
  expect(new Set(answers.map(toReset)).size).toBe(1)
}

const ascending = (a: number, b: number) => a - b

/** Returns a new project whose key was admitted, and that has one event. */
async function warm(options: { limit?: number } = {}) {
  const project = await newProject(server, options)
  expect((await project.post('/v1/events', event)).status).toBe(201)
  return project
}

async function countEvents(projectId: string): Promise<number> {
  const [row] = await server.sql<[{ n: number; head: number }]>`
    select count(*)::int as n, (select last_seq::int from event_logs where project_id = ${projectId}) as head
    from events where project_id = ${projectId}
  `
  expect(row.head).toBe(row.n)
  return row.n
}

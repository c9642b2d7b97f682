import { afterAll, beforeAll, expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { DEFAULT_RATE_LIMIT } from '../../../src/access/keys/keys.ts'
import { ageWindow } from '../../support/worlds/ageing.ts'
import { createRequests, newProject, type Answered } from '../../support/worlds/project.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

let server: Booted
/** Three processes on one database, `server` among them. */
let processes: Booted[]
beforeAll(async () => {
  server = await boot()
  const { databaseUrl } = server
  processes = [server, await boot({ databaseUrl }), await boot({ databaseUrl })]
})
afterAll(async () => {
  for (const one of processes.toReversed()) await one[Symbol.asyncDispose]()
})

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
  const event = { channelName: 'c', title: 't' }
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
  expectExactly(100, await race(250))
})

test('contract §6 concurrent use of many keys by several processes does not deadlock', async () => {
  const projects = await Promise.all(
    Array.from({ length: 20 }, () => newProject(server, { limit: 100 })),
  )
  const answers = await Promise.all(
    processes.flatMap(({ url }, place) =>
      (place % 2 ? projects : projects.toReversed()).flatMap(({ key }) =>
        Array.from({ length: 10 }, () => createRequests(url, key).get('/v1/me')),
      ),
    ),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  const last = await Promise.all(projects.map(({ get }) => get('/v1/me')))
  expect(new Set(last.map(toRemaining))).toEqual(new Set([69]))
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

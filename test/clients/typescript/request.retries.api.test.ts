import { afterEach, expect, test } from 'bun:test'
import { TidingsError } from '../../../clients/typescript/src/client.ts'
import {
  UUID,
  EVENT,
  startStory,
  errorOf,
  success,
  failure,
  keysOf,
  closeServers,
  type Reply,
} from '../../support/worlds/client-story.ts'

afterEach(closeServers)

const RUNNING = { code: 'idempotency_key_in_use' }

test('§8 idempotency: a call keeps one key over network errors, 5xx and 409 of a running request', async () => {
  const { server, client } = await startStory([
    'reset',
    failure(503),
    failure(409, RUNNING),
    success({}, 201),
  ])
  await client.events.create(EVENT)
  await client.events.create(EVENT)
  const keys = keysOf(server)
  expect(keys).toHaveLength(5)
  expect(new Set(keys.slice(0, 4)).size).toBe(1)
  expect(keys[0]).toMatch(UUID)
  expect(keys[4]).toMatch(UUID)
  expect(keys[4]).not.toBe(keys[0])
  expect(new Set(server.received.map(({ body }) => body))).toEqual(new Set([JSON.stringify(EVENT)]))
})

test('§8 idempotency: a key of the caller is sent unchanged, also on retries', async () => {
  const { server, client } = await startStory([failure(500), success({}), success({})])
  await client.identify({ user_id: 'u' }, { idempotencyKey: 'order "7"' })
  await client.events.create(EVENT, { idempotencyKey: 'order-8' })
  expect(keysOf(server)).toEqual(['order "7"', 'order "7"', 'order-8'])
})

test('§8 idempotency: a platform without crypto.randomUUID still sends a uuid per call', async () => {
  const { server, client } = await startStory([success({})])
  const original = Object.getOwnPropertyDescriptor(globalThis, 'crypto')!
  try {
    for (const value of [undefined, {}]) {
      Object.defineProperty(globalThis, 'crypto', { value, configurable: true, writable: true })
      await client.events.create(EVENT)
    }
  } finally {
    Object.defineProperty(globalThis, 'crypto', original)
  }
  const [one, other] = keysOf(server)
  expect(one).toMatch(UUID)
  expect(other).toMatch(UUID)
  expect(one).not.toBe(other)
})

test('retries: network errors, cut answers, 408, 429, 500, 502, 503, 504 and a running key are retried', async () => {
  const passing: Reply[] = [
    'reset',
    'cut',
    failure(408, { code: 'request_timeout' }),
    failure(429),
    failure(500),
    { status: 502, body: '<html>Bad gateway</html>' },
    failure(503),
    failure(504),
    failure(409, RUNNING),
  ]
  for (const reply of passing) {
    const { server, client } = await startStory([reply, success({ ok: 1 })])
    expect<unknown>(await client.events.create(EVENT)).toEqual({ ok: 1 })
    expect(server.received).toHaveLength(2)
  }
})

test('retries: other 4xx, redirects and malformed 200 answers are not retried', async () => {
  const lasting: Reply[] = [
    ...[400, 401, 403, 404, 405, 413, 415, 422].map(status => failure(status)),
    failure(409, { code: 'conflict' }),
    { status: 301, headers: { Location: '/elsewhere' } },
    { status: 200, body: '<html>Welcome</html>' },
  ]
  for (const reply of lasting) {
    const { server, client } = await startStory([reply])
    await errorOf(client.events.create(EVENT), TidingsError)
    expect(server.received).toHaveLength(1)
  }
})

test('retries: the default is 3, 0 is none; the last error is thrown', async () => {
  for (const [retries, attempts] of [
    [undefined, 4],
    [5, 6],
    [1, 2],
    [0, 1],
  ] as const) {
    const { server, client } = await startStory(
      [failure(500), failure(503, { code: 'unavailable' })],
      retries === undefined ? {} : { retries },
    )
    const { status } = await errorOf(client.me(), TidingsError)
    expect(status).toBe(attempts === 1 ? 500 : 503)
    expect(server.received).toHaveLength(attempts)
  }
})

test('retries: a Retry-After above 60 s is thrown instead, with its length', async () => {
  for (const status of [429, 503]) {
    const { server, client } = await startStory([failure(status, {}, { 'Retry-After': '61' })])
    expect(await errorOf(client.me(), TidingsError)).toMatchObject({ status, retryAfterMs: 61_000 })
    expect(server.received).toHaveLength(1)
  }
})

test('§8 idempotency: a call that slept for a day is not repeated, because its key may be forgotten', async () => {
  const { server, client } = await startStory([failure(503), success({})])
  const { now } = Date
  const { setTimeout } = globalThis
  // The machine sleeps in the wait before the retry.
  const sleeping = (run: () => void, ms: number) => {
    if (ms < 10_000) Date.now = () => now() + 24 * 60 * 60_000
    return setTimeout(run, ms)
  }
  Object.assign(globalThis, { setTimeout: sleeping })
  try {
    expect(await errorOf(client.events.create(EVENT), TidingsError)).toMatchObject({ status: 503 })
    expect(server.received).toHaveLength(1)
  } finally {
    Object.assign(globalThis, { setTimeout })
    Date.now = now
  }
})

/** Runs `work` without its waits, and returns them. A random number is always 0.5. */
async function listWaits(work: () => Promise<unknown>): Promise<number[]> {
  const waits: number[] = []
  const { setTimeout } = globalThis
  const { random } = Math
  const asked = (run: () => void, ms: number) => {
    const isTimeout = ms === 10_000
    if (!isTimeout) waits.push(ms)
    return setTimeout(run, isTimeout ? ms : 0)
  }
  Object.assign(globalThis, { setTimeout: asked })
  Math.random = () => 0.5
  try {
    await work()
  } finally {
    globalThis.setTimeout = setTimeout
    Math.random = random
  }
  return waits
}

test('retries: waits are random up to the base, doubled each time, at most 8 s', async () => {
  const { client } = await startStory([failure(500)], { retryBaseMs: 1000, retries: 5 })
  const waits = await listWaits(() => errorOf(client.me(), TidingsError))
  expect(waits).toEqual([500, 1000, 2000, 4000, 4000])
})

test.each([
  [429, '7', 7_000],
  [503, '60', 60_000],
  [409, '2', 2_000],
  // Only whole seconds are respected.
  ...['soon', '-5', '1e9', 'Fri, 01 Jan 2100 00:00:00 GMT'].map(text => [429, text, 0] as const),
])('retries: after a %i, Retry-After %s adds to the wait', async (status, value, ms) => {
  const reply = failure(status, status === 409 ? RUNNING : {}, { 'Retry-After': value })
  const { client } = await startStory([reply, success({})], { retryBaseMs: 100 })
  expect(await listWaits(() => client.events.create(EVENT))).toEqual([50 + ms])
})

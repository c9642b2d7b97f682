import { afterEach, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import {
  ConnectionError,
  createClient,
  RateLimitError,
  TidingsError,
  UnauthorizedError,
  ValidationError,
} from '../src/client/client.ts'
import type { Answer, Client, ClientOptions } from '../src/client/client.ts'
import { startScriptedServer } from './support/scripted-server.ts'
import type { Reply, ScriptedServer } from './support/scripted-server.ts'

const API_KEY = 'tdg_0123456789abcdefghijklmnopqrstuv012345'
const REQUEST_ID = '7f6f9a3e-94b0-4d0b-8f0c-5a8c1d1f7a11'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const EVENT = { channelName: 'payments', title: 'Paid' }

const servers: ScriptedServer[] = []
afterEach(() => Promise.all(servers.splice(0).map(server => server.close())))

async function startStory(
  replies: Reply[],
  options: Partial<ClientOptions> = {},
): Promise<{ server: ScriptedServer; client: Client }> {
  const server = await startScriptedServer(...replies)
  servers.push(server)
  const client = createClient({ baseUrl: server.url, apiKey: API_KEY, retryBaseMs: 1, ...options })
  return { server, client }
}

function success(data: unknown, status = 200, headers: Record<string, string> = {}): Reply {
  return { status, headers, body: { success: true, data, requestId: REQUEST_ID } }
}

function failure(status: number, fields: object = {}, headers: Record<string, string> = {}): Reply {
  const body = { success: false, error: 'No', requestId: REQUEST_ID, ...fields }
  return { status, headers, body }
}

async function errorOf<E extends Error>(work: Promise<unknown>, type: new (...a: never) => E) {
  const error = await work.then(
    () => undefined,
    reason => reason,
  )
  expect(error).toBeInstanceOf(type)
  return error as E // The line above has checked it.
}

function keysOf(server: ScriptedServer): (string | undefined)[] {
  return server.received.map(({ headers }) => headers['idempotency-key'] as string | undefined)
}

test('requests: each method sends its method, path, key and body, and resolves to data', async () => {
  const { server, client } = await startStory([success({ it: 'is data' })])
  const calls: [() => Promise<unknown>, string, string, object?][] = [
    [() => client.events.create(EVENT), 'POST', '/v1/events', EVENT],
    [() => client.events.get('evt_1'), 'GET', '/v1/events/evt_1'],
    [() => client.events.list(), 'GET', '/v1/events'],
    [() => client.identify({ user_id: 'u' }), 'POST', '/v1/identify', { user_id: 'u' }],
    [() => client.channels.list({ limit: 5 }), 'GET', '/v1/channels?limit=5'],
    [() => client.users.get('u'), 'GET', '/v1/users/u'],
    [() => client.users.erase('u'), 'DELETE', '/v1/users/u'],
    [() => client.me(), 'GET', '/v1/me'],
  ]
  for (const [run, method, url, body] of calls) {
    expect(await run()).toEqual({ it: 'is data' })
    const request = server.received.at(-1)
    expect(request).toMatchObject({ method, url, body: body ? JSON.stringify(body) : '' })
    expect(request?.headers.authorization).toBe(`Bearer ${API_KEY}`)
    expect(request?.headers['content-type']).toBe(body ? 'application/json' : undefined)
    if (body) expect(request?.headers['idempotency-key']).toMatch(UUID)
    else expect(request?.headers['idempotency-key']).toBeUndefined()
  }
})

test('requests: every filter of a list travels, dates as ISO 8601, undefined and null not', async () => {
  const { server, client } = await startStory([success({ items: [], nextCursor: null })])
  await client.events.list({
    channel: 'C++ & co',
    tag: 'a=b',
    userId: '🙂',
    source: 'api',
    text: 'x y',
    from: new Date(0),
    to: '2030-01-01T00:00:00Z',
    after: 0,
    cursor: null,
    limit: 100,
  })
  const { pathname, searchParams } = new URL(server.received[0]!.url, server.url)
  expect(pathname).toBe('/v1/events')
  expect(Object.fromEntries(searchParams)).toEqual({
    channel: 'C++ & co',
    tag: 'a=b',
    userId: '🙂',
    source: 'api',
    text: 'x y',
    from: '1970-01-01T00:00:00.000Z',
    to: '2030-01-01T00:00:00Z',
    after: '0',
    limit: '100',
  })
})

test('requests: a userId of slashes, emoji, percent and question marks is one path segment', async () => {
  const { server, client } = await startStory([success({})])
  for (const userId of ['a/b', '../x', '🙂', '100%', 'a?b#c', 'a b+c', '%2e%2e', '...', 'é@x.io']) {
    await client.users.get(userId)
    const [, v1, users, segment, ...rest] = server.received.at(-1)!.url.split('/')
    expect([v1, users, decodeURIComponent(segment!), ...rest]).toEqual(['v1', 'users', userId])
  }
})

test('requests: an id that would name another address is refused before anything is sent', async () => {
  const { server, client } = await startStory([success({})])
  for (const id of ['', '.', '..']) {
    await errorOf(client.users.erase(id), TypeError)
    await errorOf(client.users.get(id), TypeError)
    await errorOf(client.events.get(id), TypeError)
  }
  expect(server.received).toEqual([])
})

test('requests: input that no request can carry rejects with a TypeError and is not repeated', async () => {
  const { server, client } = await startStory([success({})])
  const circular: Record<string, unknown> = {}
  circular.self = circular
  await errorOf(client.events.create({ ...EVENT, metadata: circular }), TypeError)
  await errorOf(client.events.create(EVENT, { idempotencyKey: 'snow ☃' }), TypeError)
  expect(server.received).toEqual([])
})

test('baseUrl: a base path is kept and trailing slashes are not', async () => {
  for (const suffix of ['', '/', '///', '/tidings', '/tidings/', '/a/b//']) {
    const { server } = await startStory([success({})])
    await createClient({ baseUrl: server.url + suffix, apiKey: API_KEY }).me()
    expect(server.received[0]?.url).toBe(`${suffix.replace(/\/+$/, '')}/v1/me`)
  }
})

test('options: a missing or unusable baseUrl or apiKey is a TypeError that names it, and not the key', () => {
  const base = 'https://example.com'
  for (const baseUrl of [
    '',
    'example.com',
    '/x',
    'ftp://a',
    'http://me:pw@a',
    `${base}?q`,
    `${base}#f`,
  ]) {
    expect(() => createClient({ baseUrl, apiKey: API_KEY })).toThrow(/^baseUrl must/)
  }
  for (const apiKey of ['', 'tdg_secret\n', 'tdg_secret x', 'tdg_secretß']) {
    expect(() => createClient({ baseUrl: base, apiKey })).toThrow(
      /^apiKey must be given(?!.*secret)/,
    )
  }
  const nothing = {} as ClientOptions // What a caller without types may pass.
  expect(() => createClient(nothing)).toThrow(/^baseUrl must/)
  expect(() => createClient({ ...nothing, baseUrl: base })).toThrow(/^apiKey must/)
})

test('options: a fetch of the caller is used, and the global one is looked up at each call', async () => {
  const urls: string[] = []
  const answering = async (url: string) => {
    urls.push(url)
    return Response.json({ success: true, data: 1 })
  }
  const options = { baseUrl: 'http://own.test', apiKey: API_KEY }
  await createClient({ ...options, fetch: answering }).me()

  const client = createClient({ ...options, baseUrl: 'http://global.test' })
  const original = globalThis.fetch
  globalThis.fetch = answering as typeof fetch // Only its call is used.
  try {
    await client.me()
  } finally {
    globalThis.fetch = original
  }
  expect(urls).toEqual(['http://own.test/v1/me', 'http://global.test/v1/me'])
})

test('answers: onAnswer hears the requestId and whether the answer is a replay', async () => {
  const heard: Answer[] = []
  const onAnswer = (answer: Answer) => heard.push(answer)
  const { client } = await startStory([
    success({}, 201),
    success({}, 201, { 'X-Idempotent-Replay': 'true', 'X-Request-Id': 'the-new-one' }),
  ])
  await client.events.create(EVENT, { onAnswer })
  await client.events.create(EVENT, { onAnswer })
  expect(heard).toEqual([
    { requestId: REQUEST_ID, replayed: false },
    { requestId: 'the-new-one', replayed: true },
  ])
})

test('lists: all yields every item over the pages, with the filters on each and after on the first', async () => {
  const { server, client } = await startStory([
    success({ items: [{ seq: 5 }, { seq: 4 }], nextCursor: 'c/1' }),
    success({ items: [], nextCursor: 'c2' }),
    failure(503),
    success({ items: [{ seq: 1 }], nextCursor: null }),
  ])
  const seqs: number[] = []
  for await (const { seq } of client.events.all({ channel: 'x', after: 0, limit: 2 }))
    seqs.push(seq)
  expect(seqs).toEqual([5, 4, 1])
  expect(server.received.map(({ url }) => url)).toEqual([
    '/v1/events?channel=x&after=0&limit=2',
    '/v1/events?channel=x&limit=2&cursor=c%2F1',
    '/v1/events?channel=x&limit=2&cursor=c2',
    '/v1/events?channel=x&limit=2&cursor=c2',
  ])
})

test('lists: all starts at a given cursor, and a loop that is left fetches no further page', async () => {
  const { server, client } = await startStory([
    success({ items: [{ seq: 2 }, { seq: 1 }], nextCursor: 'more' }),
  ])
  for await (const { seq } of client.events.all({ cursor: 'here' })) if (seq === 2) break
  expect(server.received.map(({ url }) => url)).toEqual(['/v1/events?cursor=here'])
})

test('§8 idempotency: one key per call, kept over network errors, 5xx and 409 of a running winner', async () => {
  const { server, client } = await startStory([
    'drop',
    failure(503),
    failure(409, { code: 'idempotency_key_in_use' }),
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

test('§8 idempotency: a key of the caller is used as it is, over retries too', async () => {
  const { server, client } = await startStory([failure(500), success({}), success({})])
  await client.identify({ user_id: 'u' }, { idempotencyKey: 'order "7"' })
  await client.events.create(EVENT, { idempotencyKey: 'order-8' })
  expect(keysOf(server)).toEqual(['order "7"', 'order "7"', 'order-8'])
})

test('§8 idempotency: a platform without crypto.randomUUID still gets a uuid each', async () => {
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

test('retries: network errors, cut answers, 429, 500, 502, 503, 504 and a running key are repeated', async () => {
  const passing: Reply[] = [
    'drop',
    'cut',
    failure(429),
    failure(500),
    { status: 502, body: '<html>Bad gateway</html>' },
    failure(503),
    failure(504),
    failure(409, { code: 'idempotency_key_in_use' }),
  ]
  for (const reply of passing) {
    const { server, client } = await startStory([reply, success({ ok: 1 })])
    expect<unknown>(await client.events.create(EVENT)).toEqual({ ok: 1 })
    expect(server.received).toHaveLength(2)
  }
})

test('retries: no other 4xx, no redirect and no strange 200 is repeated', async () => {
  const lasting: Reply[] = [
    ...[400, 401, 403, 404, 405, 408, 413, 415, 422].map(status => failure(status)),
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

test('retries: 3 when nothing is said, as many as asked, none when 0; the last error is thrown', async () => {
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

test('retries: Retry-After is waited out for 429, 503 and a running key', async () => {
  const hint = { 'Retry-After': '1' }
  const replies = [
    failure(429, {}, hint),
    failure(503, {}, hint),
    failure(409, { code: 'idempotency_key_in_use' }, hint),
  ]
  await Promise.all(
    replies.map(async reply => {
      const { client } = await startStory([reply, success({})])
      const startedAt = performance.now()
      await client.events.create(EVENT)
      // A timer may fire a millisecond early.
      expect(performance.now() - startedAt).toBeGreaterThan(995)
    }),
  )
})

test('retries: a Retry-After above 60 s is not waited for; the error says how long it would be', async () => {
  for (const status of [429, 503]) {
    const { server, client } = await startStory([failure(status, {}, { 'Retry-After': '61' })])
    expect(await errorOf(client.me(), TidingsError)).toMatchObject({ status, retryAfterMs: 61_000 })
    expect(server.received).toHaveLength(1)
  }
})

test('retries: a Retry-After that is not whole seconds counts as none', async () => {
  for (const value of ['soon', '-5', '1e9', 'Fri, 01 Jan 2100 00:00:00 GMT']) {
    const { client } = await startStory([failure(429, {}, { 'Retry-After': value }), success({})])
    await client.me()
  }
})

test('retries: waits are random between 0 and the base, doubled with each, at most 8 s', async () => {
  const waits: number[] = []
  const { setTimeout } = globalThis
  const { random } = Math
  const { client } = await startStory([failure(500)], { retryBaseMs: 1000, retries: 5 })
  const asked = (run: () => void, ms: number) => {
    const isTimeout = ms === 10_000
    if (!isTimeout) waits.push(ms)
    return setTimeout(run, isTimeout ? ms : 0)
  }
  Object.assign(globalThis, { setTimeout: asked })
  Math.random = () => 0.5
  try {
    await errorOf(client.me(), TidingsError)
  } finally {
    globalThis.setTimeout = setTimeout
    Math.random = random
  }
  expect(waits).toEqual([500, 1000, 2000, 4000, 4000])
})

test('timeouts: an answer that never comes, or stops within its body, is a ConnectionError', async () => {
  await Promise.all(
    (['hang', 'stall'] as const).map(async reply => {
      const { server, client } = await startStory([reply], { timeoutMs: 250, retries: 1 })
      const error = await errorOf(client.me(), ConnectionError)
      expect(error).toMatchObject({ name: 'ConnectionError', timedOut: true, status: undefined })
      expect(error.message).toBe(`No answer from ${server.url} within 250 ms`)
      expect(error.cause).toBeDefined()
      expect(server.received).toHaveLength(2)
    }),
  )
})

test('timeouts: each attempt has its own, so a repeat can succeed; the key stays', async () => {
  const { server, client } = await startStory(['hang', 'stall', success({ ok: 1 }, 201)], {
    timeoutMs: 250,
  })
  expect<unknown>(await client.events.create(EVENT)).toEqual({ ok: 1 })
  expect(new Set(keysOf(server)).size).toBe(1)
})

test('timeouts: one of Infinity waits as long as a timer can', async () => {
  const { client } = await startStory([success({ ok: 1 })], { timeoutMs: Infinity, retries: 0 })
  expect<unknown>(await client.me()).toEqual({ ok: 1 })
})

test('timeouts: no timer and no listener outlives a call, whatever its end', async () => {
  const timers = new Set<unknown>()
  const listeners = new Set<unknown>()
  const { setTimeout, clearTimeout } = globalThis
  const { client } = await startStory(
    [failure(500), 'drop', 'stall', success({}), failure(404), failure(500)],
    { timeoutMs: 250 },
  )
  const { signal } = new AbortController()
  const { addEventListener, removeEventListener } = signal
  const listening = (type: string, listener: () => void) => {
    listeners.add(listener)
    addEventListener.call(signal, type, listener)
  }
  const leaving = (type: string, listener: () => void) => {
    listeners.delete(listener)
    removeEventListener.call(signal, type, listener)
  }
  Object.assign(signal, { addEventListener: listening, removeEventListener: leaving })
  const starting = (run: () => void, ms: number) => {
    const timer = setTimeout(run, ms)
    timers.add(timer)
    return timer
  }
  const clearing = (timer: Timer) => {
    timers.delete(timer)
    clearTimeout(timer)
  }
  Object.assign(globalThis, { setTimeout: starting, clearTimeout: clearing })
  try {
    await client.me({ signal })
    await errorOf(client.me({ signal }), TidingsError)
    await errorOf(client.me({ signal }), TidingsError)
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout })
  }
  expect([timers.size, listeners.size]).toEqual([0, 0])
})

test('abort: a signal that is aborted already sends nothing and rejects with its reason', async () => {
  const { server, client } = await startStory([success({})])
  const reason = new Error('changed my mind')
  expect(await errorOf(client.me({ signal: AbortSignal.abort(reason) }), Error)).toBe(reason)
  expect(server.received).toEqual([])
})

test('abort: a signal ends an attempt, and a body, without a repeat', async () => {
  for (const [reply, retries] of [
    ['hang', 3],
    ['stall', 3],
    ['hang', 0],
  ] as const) {
    const { server, client } = await startStory([reply], { retries })
    const controller = new AbortController()
    const call = client.events.create(EVENT, { signal: controller.signal })
    await server.until(1)
    controller.abort()
    const error = await errorOf(call, DOMException)
    expect(error.name).toBe('AbortError')
    expect(server.received).toHaveLength(1)
  }
})

test('abort: a signal ends the wait before a retry', async () => {
  const { server, client } = await startStory([failure(429, {}, { 'Retry-After': '60' })])
  const controller = new AbortController()
  const { setTimeout } = globalThis
  // Aborts once the client has begun to wait its minute.
  const waiting = new Promise<void>(resolve => {
    const asked = (run: () => void, ms: number) => {
      if (ms >= 60_000) resolve()
      return setTimeout(run, ms)
    }
    globalThis.setTimeout = asked as typeof setTimeout // Only its call is used.
  })
  try {
    const call = client.me({ signal: controller.signal })
    await waiting
    controller.abort('enough')
    expect(await call.catch(reason => reason)).toBe('enough')
  } finally {
    globalThis.setTimeout = setTimeout
  }
  expect(server.received).toHaveLength(1)
})

test('abort: a signal ends an iteration between its pages', async () => {
  const { server, client } = await startStory([
    success({ items: [{ seq: 1 }], nextCursor: 'more' }),
  ])
  const controller = new AbortController()
  const events = client.events.all({}, { signal: controller.signal })
  expect((await events.next()).value).toMatchObject({ seq: 1 })
  controller.abort()
  await errorOf(events.next(), DOMException)
  expect(server.received).toHaveLength(1)
})

test('§7 errors: 400 is a ValidationError with the details, which its message tells too', async () => {
  const details = [
    { path: ['channelName'], message: 'Required', code: 'required' },
    { path: ['tags', '3'], message: 'Too long', code: 'too_long' },
    { path: [], message: 'Not an object' },
  ]
  const { client } = await startStory([failure(400, { error: 'Validation error', details })])
  const error = await errorOf(client.events.create(EVENT), ValidationError)
  expect(error).toBeInstanceOf(TidingsError)
  expect(error).toMatchObject({
    name: 'ValidationError',
    status: 400,
    requestId: REQUEST_ID,
    details,
    message: 'Validation error; channelName: Required; tags.3: Too long; body: Not an object',
  })
})

test('§7 errors: 401 has two fields alone and is an UnauthorizedError, named by its header', async () => {
  const body = { error: 'Unauthorized', message: 'Invalid or missing API key' }
  const headers = { 'X-Request-Id': REQUEST_ID }
  const { client } = await startStory([
    { status: 401, body, headers },
    { status: 401, body },
  ])
  const expected = { name: 'UnauthorizedError', status: 401, message: 'Invalid or missing API key' }
  const error = await errorOf(client.me(), UnauthorizedError)
  expect(error).toMatchObject({ ...expected, requestId: REQUEST_ID })
  expect((await errorOf(client.me(), UnauthorizedError)).requestId).toBeUndefined()
})

test('§7 errors: 429 is a RateLimitError with retryAfterMs', async () => {
  const { client } = await startStory(
    [failure(429, { message: 'Wait a little' }, { 'Retry-After': '7' })],
    { retries: 0 },
  )
  expect(await errorOf(client.me(), RateLimitError)).toMatchObject({
    name: 'RateLimitError',
    status: 429,
    message: 'Wait a little',
    retryAfterMs: 7000,
    requestId: REQUEST_ID,
  })
})

test('§7 errors: every other failure is a plain TidingsError with status, code and requestId', async () => {
  for (const [status, code] of [
    [403, 'insufficient_scope'],
    [404, 'not_found'],
    [409, 'conflict'],
    [422, 'idempotency_key_reused'],
    [500, undefined],
  ] as const) {
    const { client } = await startStory([failure(status, { code })], { retries: 0 })
    const error = await errorOf(client.me(), TidingsError)
    expect(error.constructor).toBe(TidingsError)
    expect(error).toMatchObject({
      name: 'TidingsError',
      status,
      code,
      message: 'No',
      requestId: REQUEST_ID,
    })
  }
})

test('errors: a connection that cannot be made is a ConnectionError with its cause', async () => {
  const { server, client } = await startStory([success({})], { retries: 1 })
  await server.close()
  const error = await errorOf(client.me(), ConnectionError)
  expect(error).toMatchObject({ timedOut: false, message: `No answer from ${server.url}` })
  expect(error.cause).toBeInstanceOf(Error)
})

test('errors: a body that is not of Tidings becomes a TidingsError, never a SyntaxError', async () => {
  const bodies = ['<html>502</html>', '', '{"success":true', 'null', '[]', '1', '"x"', '{}']
  for (const body of bodies) {
    for (const status of [200, 201, 400, 404, 418, 502]) {
      const { client } = await startStory([{ status, body }], { retries: 0 })
      const error = await errorOf(client.me(), TidingsError)
      expect(error.message).toBe(`HTTP ${status} without an answer of Tidings in its body`)
      expect(error.status).toBe(status)
    }
  }
  const { client } = await startStory([{ status: 404, body: { success: true, data: 1 } }])
  await errorOf(client.me(), TidingsError)
  for (const body of [{ details: [null] }, { details: 'x', error: 1 }, { success: false }]) {
    const { client } = await startStory([{ status: 400, body }])
    expect((await errorOf(client.me(), TidingsError)).constructor).toBe(TidingsError)
  }
})

test('errors: a redirect is not followed, for it would turn an event into a list', async () => {
  for (const status of [301, 302, 307, 308]) {
    const { server, client } = await startStory([
      { status, headers: { Location: '/v1/events' } },
      success({ items: [], nextCursor: null }),
    ])
    const error = await errorOf(client.events.create(EVENT), TidingsError)
    expect(error).toMatchObject({ status, message: expect.stringMatching(/redirects.*baseUrl/) })
    expect(server.received).toHaveLength(1)
  }
})

test('errors: the API key is in none of them, nor in their causes', async () => {
  const { server: gone, client: unreachable } = await startStory([success({})], { retries: 0 })
  await gone.close()
  const replies: Reply[] = ['drop', 'cut', 'hang', failure(400, { details: [] }), failure(401)]
  const errors = [await errorOf(unreachable.me(), TidingsError)]
  for (const reply of [...replies, failure(429), failure(500), { status: 502, body: 'no' }]) {
    const { client } = await startStory([reply], { retries: 0, timeoutMs: 100 })
    errors.push(await errorOf(client.events.create(EVENT), TidingsError))
  }
  for (const error of errors) {
    const shown = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error)
    expect(shown).not.toContain(API_KEY.slice(4))
  }
})

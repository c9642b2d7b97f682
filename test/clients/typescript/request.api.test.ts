import { afterEach, expect, spyOn, test } from 'bun:test'
import { createClient } from '../../../clients/typescript/src/client.ts'
import type { ResponseInfo, ClientOptions } from '../../../clients/typescript/src/client.ts'
import {
  API_KEY,
  REQUEST_ID,
  UUID,
  EVENT,
  startStory,
  errorOf,
  success,
  failure,
  closeServers,
} from '../../support/worlds/client-story.ts'
import { parseExact } from '../../../src/http/exact-json.ts'
import { until } from '../../support/until.ts'

afterEach(closeServers)

test('requests: each method sends its method, path, key and body, and resolves to data', async () => {
  const { server, client } = await startStory([success({ it: 'is data' })])
  const calls: [() => Promise<unknown>, string, string, object?][] = [
    [() => client.events.create(EVENT), 'POST', '/v1/events', EVENT],
    [() => client.events.get('evt_1'), 'GET', '/v1/events/evt_1'],
    [() => client.events.list(), 'GET', '/v1/events'],
    [() => client.identify({ user_id: 'u' }), 'POST', '/v1/identify', { user_id: 'u' }],
    [() => client.channels.list({ limit: 5 }), 'GET', '/v1/channels?limit=5'],
    [() => client.threads.list({ limit: 5 }), 'GET', '/v1/threads?limit=5'],
    [() => client.users.get('u'), 'GET', '/v1/users/u'],
    [() => client.users.erase('u'), 'DELETE', '/v1/users/u'],
    [() => client.me(), 'GET', '/v1/me'],
  ]
  for (const [run, method, url, body] of calls) {
    expect(await run()).toEqual({ it: 'is data' })
    const request = server.received.at(-1)
    expect(request).toMatchObject({ method, path: url, body: body ? JSON.stringify(body) : '' })
    expect(request?.headers['authorization']).toBe(`Bearer ${API_KEY}`)
    expect(request?.headers['content-type']).toBe(body ? 'application/json' : undefined)
    if (body) expect(request?.headers['idempotency-key']).toMatch(UUID)
    else expect(request?.headers['idempotency-key']).toBeUndefined()
  }
})

test('requests: every filter of a list is sent, dates as ISO 8601, undefined and null left out', async () => {
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
  const { pathname, searchParams } = new URL(server.received[0]!.path, server.url)
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

test('requests: a userId with slashes, emoji, percent and question marks is one path segment', async () => {
  const { server, client } = await startStory([success({})])
  for (const userId of ['a/b', '../x', '🙂', '100%', 'a?b#c', 'a b+c', '%2e%2e', '...', 'é@x.io']) {
    await client.users.get(userId)
    const [, v1, users, segment, ...rest] = server.received.at(-1)!.path.split('/')
    expect([v1, users, decodeURIComponent(segment!), ...rest]).toEqual(['v1', 'users', userId])
  }
})

test('requests: an id that would change the path is refused before anything is sent', async () => {
  const { server, client } = await startStory([success({})])
  for (const id of ['', '.', '..']) {
    await errorOf(client.users.erase(id), TypeError)
    await errorOf(client.users.get(id), TypeError)
    await errorOf(client.events.get(id), TypeError)
  }
  expect(server.received).toEqual([])
})

test('requests: input that cannot be sent rejects with a TypeError without a retry', async () => {
  const { server, client } = await startStory([success({})])
  const circular: Record<string, unknown> = {}
  circular.self = circular
  await errorOf(client.events.create({ ...EVENT, metadata: circular }), TypeError)
  await errorOf(client.events.create(EVENT, { idempotencyKey: 'snow ☃' }), TypeError)
  expect(server.received).toEqual([])
})

test('baseUrl: a base path is kept, trailing slashes are removed', async () => {
  for (const suffix of ['', '/', '///', '/tidings', '/tidings/', '/a/b//']) {
    const { server } = await startStory([success({})])
    await createClient({ baseUrl: server.url + suffix, apiKey: API_KEY }).me()
    expect(server.received[0]?.path).toBe(`${suffix.replace(/\/+$/, '')}/v1/me`)
  }
})

test('options: a missing or invalid baseUrl or apiKey is a TypeError that names it, and not the key', () => {
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
    expect(() => createClient({ baseUrl: base, apiKey })).toThrow(/^apiKey is required(?!.*secret)/)
  }
  const nothing = {} as ClientOptions // Untyped callers may pass an empty object.
  expect(() => createClient(nothing)).toThrow(/^baseUrl must/)
  expect(() => createClient({ ...nothing, baseUrl: base })).toThrow(/^apiKey is required/)
})

test("options: the caller's fetch is used, and the global one is looked up on each call", async () => {
  const urls: string[] = []
  const answering = async (url: string) => {
    urls.push(url)
    return Response.json({ success: true, data: 1 })
  }
  const options = { baseUrl: 'http://own.test', apiKey: API_KEY }
  await createClient({ ...options, fetch: answering }).me()

  const client = createClient({ ...options, baseUrl: 'http://global.test' })
  const original = globalThis.fetch
  globalThis.fetch = answering as typeof fetch // The client calls it with these arguments alone.
  try {
    await client.me()
  } finally {
    globalThis.fetch = original
  }
  expect(urls).toEqual(['http://own.test/v1/me', 'http://global.test/v1/me'])
})

test('responses: onResponse that throws or rejects changes no result', async () => {
  const warn = spyOn(console, 'warn').mockImplementation(() => {})
  try {
    const { client } = await startStory([success({ ok: 1 })])
    const failures = [
      () => {
        throw new Error('A bug')
      },
      async () => Promise.reject(new Error('A bug')),
    ]
    for (const onResponse of failures)
      expect<unknown>(await client.events.create(EVENT, { onResponse })).toEqual({ ok: 1 })
    await until(() => warn.mock.calls.length === 2)
    expect(warn.mock.calls[0]).toEqual(['Tidings: onResponse failed.', expect.any(Error)])
  } finally {
    warn.mockRestore()
  }
})

test('responses: onResponse receives the requestId and whether the response is a replay', async () => {
  const heard: ResponseInfo[] = []
  const onResponse = (info: ResponseInfo) => heard.push(info)
  const { client } = await startStory([
    success({}, 201),
    success({}, 201, { 'X-Idempotent-Replay': 'true', 'X-Request-Id': 'the-new-one' }),
  ])
  await client.events.create(EVENT, { onResponse })
  await client.events.create(EVENT, { onResponse })
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
  expect(server.received.map(({ path }) => path)).toEqual([
    '/v1/events?channel=x&after=0&limit=2',
    '/v1/events?channel=x&limit=2&cursor=c%2F1',
    '/v1/events?channel=x&limit=2&cursor=c2',
    '/v1/events?channel=x&limit=2&cursor=c2',
  ])
})

test('lists: all starts at a given cursor, and a loop that ends early fetches no further page', async () => {
  const { server, client } = await startStory([
    success({ items: [{ seq: 2 }, { seq: 1 }], nextCursor: 'more' }),
  ])
  for await (const { seq } of client.events.all({ cursor: 'here' })) if (seq === 2) break
  expect(server.received.map(({ path }) => path)).toEqual(['/v1/events?cursor=here'])
})

const NUMBERS =
  '{"id":1152921506151679042,"price":1.10,"ratio":0.12345678901234567890,"huge":1e400,' +
  '"zero":-0,"list":[1e21,-12345678901234567890,42],"text":"1.10"}'
const EXACT = {
  ...{ id: 1152921506151679042n, price: 1.1, ratio: '0.12345678901234567890', huge: '1e400' },
  ...{ zero: -0, list: [1e21, -12345678901234567890n, 42], text: '1.10' },
}

test('numbers: what a number cannot hold is a bigint or text, and a bigint is sent as a number', async () => {
  const metadata = parseExact(NUMBERS).value
  const { server, client } = await startStory([success({ metadata })])
  expect((await client.events.get('evt_1')).metadata).toEqual(EXACT)
  const { id, list } = EXACT
  await client.events.create({ ...EVENT, metadata: { id, list } })
  await client.identify({ user_id: 'u', properties: { id } })
  expect(server.received[1]!.body).toContain(
    '"metadata":{"id":1152921506151679042,"list":[1e+21,-12345678901234567890,42]}',
  )
  expect(server.received[2]!.body).toContain('"properties":{"id":1152921506151679042}')
})

test('numbers: a program can make its own values of their texts', async () => {
  const metadata = parseExact(NUMBERS).value
  const { client } = await startStory([success({ metadata, seq: 100 })], {
    parseNumber: text => `<${text}>`,
  })
  const event = await client.events.get('evt_1')
  expect(event).toMatchObject({
    seq: 100,
    metadata: {
      id: '<1152921506151679042>',
      price: '<1.10>',
      list: ['<1e21>', '<-12345678901234567890>', 42],
    },
  })
})

test('numbers: the queue sends and drops them with all digits', async () => {
  const dropped: unknown[] = []
  const { server, client } = await startStory([success({}, 201), failure(403)], {
    onDrop: event => dropped.push(event),
  })
  const metadata = { id: EXACT.id, price: parseExact('[1.10]').value }
  client.queue({ ...EVENT, metadata })
  expect(await client.flush()).toBe(0)
  expect(server.received[0]!.body).toContain('"metadata":{"id":1152921506151679042,"price":[1.10]}')
  expect(JSON.parse(server.received[0]!.body)).toHaveProperty('timestamp')
  client.queue({ ...EVENT, metadata: { id: EXACT.id } })
  expect(await client.flush()).toBe(0)
  expect(dropped).toEqual([{ ...EVENT, metadata: { id: EXACT.id } }])
})

test('numbers: Node 20, without JSON.rawJSON, reads and writes the same', async () => {
  const { parse } = JSON
  const { rawJSON } = JSON as unknown as { rawJSON: unknown }
  const path = '../../../clients/typescript/src/json.ts?without-raw-json'
  let old: typeof import('../../../clients/typescript/src/json.ts')
  try {
    Object.assign(JSON, {
      rawJSON: undefined,
      parse: (text: string, revive?: (key: string, value: unknown) => unknown) =>
        parse(text, revive && ((key, value) => revive(key, value))),
    })
    old = await import(path)
  } finally {
    Object.assign(JSON, { rawJSON, parse })
  }
  expect(old.parseJson(NUMBERS)).toEqual(EXACT)
  expect(old.toJson({ id: EXACT.id, text: '5n "6n"' })).toBe(
    '{"id":1152921506151679042,"text":"5n \\"6n\\""}',
  )
  expect(() => old.parseJson('{"a":')).toThrow(SyntaxError)
})

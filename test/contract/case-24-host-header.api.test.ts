import { beforeAll, describe, expect, test } from 'bun:test'
import { UUID_V4, expectFailure, expectIssues } from '../support/answers.ts'
import { sendRaw, toRequest, type RawAnswer } from '../support/clients/raw-http.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject } from '../support/worlds/project.ts'

const server = withSharedServer()
let key: string
beforeAll(async () => {
  key = (await newProject(server)).key
})

async function ask(
  path: string,
  { host = ['Host: localhost'], more = [] as string[], version = '1.1', method = 'GET' } = {},
): Promise<RawAnswer | undefined> {
  const lines = [...host, `Authorization: Bearer ${key}`, ...more]
  return sendRaw(server.url, toRequest(`${method} ${path} HTTP/${version}`, lines))
}

/** Names the operation that answered, from fields that only it returns; else returns the status. */
function toSource(answer: RawAnswer | undefined): string {
  if (!answer) return 'none'
  if (answer.body?.data?.key) return 'getMe'
  if (answer.body?.data?.items) return 'a list'
  if (answer.body?.error?.startsWith('No user')) return 'getUser'
  if (answer.body?.error?.startsWith('No event')) return 'getEvent'
  return String(answer.status)
}

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']

describe('case 24: the Host header does not affect routing:', () => {
  test('a valid one of any form', async () => {
    const hosts = [
      ...['a', 'ab', 'abc', 'a:1', 'x.y', 'localhost', 'LOCALHOST:3000', '[::1]', '[::1]:80'],
      // Valid for our check, invalid as URLs: the answer must not depend on that.
      ...['1.2.3.4.5', '999.999.999.999', 'a:99999', '[::::]', 'xn--', 'a..b', '.', '-', '0x7f'],
    ]
    for (const name of hosts) {
      const host = [`Host: ${name}`]
      for (const more of [[], upgrade]) {
        expect([name, toSource(await ask('/v1/me', { host, more }))]).toEqual([name, 'getMe'])
        for (const path of ['/ab/v1/me', '/a/v1/me', '/abc/v1/me', '/nothing', '/me', '/v1/m']) {
          expect([name, toSource(await ask(path, { host, more }))]).toEqual([name, '404'])
        }
        const wrongMethod = await ask('/v1/me', { host, more, method: 'PUT' })
        expect([name, toSource(wrongMethod)]).toEqual([name, '405'])
      }
    }
  })

  test('a short Host does not change the body', async () => {
    const body = '{"channelName":"a","title":"t"}'
    for (const framing of [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked']) {
      const lines = ['Host: a', `Authorization: Bearer ${key}`, 'Content-Type: application/json']
      const sent = framing.startsWith('C') ? body : `1f\r\n${body}\r\n0\r\n\r\n`
      const text = toRequest('POST /v1/events HTTP/1.1', [...lines, framing], sent)
      expect((await sendRaw(server.url, text))?.status).toBe(201)
    }
  })

  test.each([
    ['two', ['Host: a', 'Host: b']],
    ['the same twice', ['Host: a', 'Host: a']],
    ['an empty one', ['Host:']],
    ['one with a path', ['Host: a/v1/me']],
    ['one with a path and a query', ['Host: a/v1/me?']],
    ['one with a fragment', ['Host: a#b']],
    ['one with a user', ['Host: a@b']],
    ['one with a space', ['Host: a b']],
    ['one in brackets that do not close', ['Host: [::1']],
    ['one without its port', ['Host: a:']],
    ['one of other letters', ['Host: é']],
  ])('%s is refused in our envelope', async (_, host) => {
    for (const more of [[], upgrade]) {
      expectIssues(await ask('/v1/me', { host, more }), 'Host invalid_format')
      expectIssues(await ask('/nothing', { host, more }), 'Host invalid_format')
    }
  })

  test('a missing Host is refused: by the platform in HTTP/1.1, by us in HTTP/1.0', async () => {
    expect((await ask('/v1/me', { host: [] }))?.status).toBe(400)
    expectIssues(await ask('/v1/me', { host: [], version: '1.0' }), 'Host invalid_format')
  })

  test('HTTP/1.0 with a Host is served', async () => {
    expect(toSource(await ask('/v1/me', { version: '1.0' }))).toBe('getMe')
    expectFailure(await ask('/nothing', { version: '1.0' }), 404, 'not_found')
  })
})

test.each([
  ['http://evil.example/v1/me', 'getMe'],
  ['http://a/v1/me', 'getMe'],
  ['https://u:p@evil.example:1/v1/me', 'getMe'],
  ['http://evil.example/nothing', '404'],
  ['http://evil.example', '421'],
  ['http://a/ab/v1/me', '404'],
  ['HTTP://evil.example/v1/me', 'getMe'],
  ['ftp://evil.example/v1/me', '400 404'],
  ['*', '400 404'],
  ['v1/me', '400'],
])(
  'case 24: the target %s in absolute form is routed by its path alone',
  async (target, source) => {
    expect(source.split(' ')).toContain(toSource(await ask(target)))
  },
)

test('case 24: no other spelling of a path reaches a route', async () => {
  for (const path of [
    ...['//v1/me', '/v1//me', '///', '/v1/me/', '/v1/events/', '/V1/me', '/v1/ME', '/v1/Events'],
    ...['/v1/%6de', '/%76%31/me', '/v1%2fme', '/v1%2Fme', '/v1/me%20', '/v1/me%00', '/v1/me;x=1'],
    ...['/v1/me.json', '/v1/me#x', '/v1/users/', '/v1/users/a/b', '/v1/users//', '/v1/%ff', '/%'],
    ...['/v1/channels//events', '/v1/..%2fme', '/v1/%2e%2e%2fme', '/v1/__proto__', '/__proto__'],
    '/v1/constructor',
  ]) {
    expectFailure(await ask(path), 404, 'not_found')
  }
})

test.each([
  ['//v1/me', '/v1/me'],
  ['/v1/me/', '/v1/me'],
  ['/V1/Me', '/v1/me'],
  ['/v1//Users/Ada%2F1/', '/v1/users/Ada%2F1'],
  ['/v1/%6de', undefined],
  ['/v1/me.json', undefined],
])('the message for the path %s names %p', async (path, usual) => {
  const answer = await ask(path)
  expectFailure(answer, 404, 'not_found')
  const hint = usual === undefined ? '' : `. Use ${usual}`
  expect(answer?.body?.error).toBe(`There is no route GET ${path}${hint}`)
})

test('case 24: dot segments are resolved by the URL rules before routing', async () => {
  for (const dots of ['..', '%2e%2e', '%2E.', '.%2e']) {
    expect(toSource(await ask(`/v1/nothing/${dots}/me`))).toBe('getMe')
    expect(toSource(await ask(`/v1/users/${dots}`))).toBe('404')
    expect(toSource(await ask(`/${dots}/${dots}/nothing`))).toBe('404')
  }
})

test('case 24: an encoded slash in a parameter is part of the parameter', async () => {
  const { post, get } = await newProject(server)
  for (const userId of ['a/b', '../me', 'a?b', 'a#b', 'a%2Fb', 'a+b', 'a b', '%', 'ü', '..;']) {
    await post('/v1/identify', { user_id: userId })
    const { status, body } = await get(`/v1/users/${encodeURIComponent(userId)}`)
    expect([userId, status, body.data?.userId]).toEqual([userId, 200, userId])
  }
  expect(toSource(await ask('/v1/users/a%2F..%2Fme'))).toBe('getUser')
})

test('case 24: bad percent-encoding is a 400 that names the parameter', async () => {
  for (const bad of ['%', '%f', '%zz', '%ff', '%c3%28', '%ed%a0%80', 'a%', '%u0041']) {
    expectIssues(await ask(`/v1/users/${bad}`), 'userId invalid_encoding')
    expectIssues(await ask(`/v1/events?tag=${bad}`), 'tag invalid_encoding')
  }
  for (const path of ['/v1/users/%00', '/v1/users/a%00b']) {
    expectIssues(await ask(path), 'userId invalid_encoding')
    expectIssues(await ask(path, { method: 'DELETE' }), 'userId invalid_encoding')
  }
  for (const name of ['a%0d%0aSet-Cookie:%20a=b', '%00', 'a%e2%80%a8b', '%ed%a0%80']) {
    const answer = await ask(`/v1/channels/${name}`, { method: 'POST' })
    const paths = answer?.body.details.map((issue: { path: string[] }) => issue.path[0])
    expect([name, paths]).toEqual([name, expect.arrayContaining(['name'])])
  }
  expectFailure(await ask('/v1/events/%00'), 404, 'not_found')
  expectIssues(await ask(`/v1/users/${'x'.repeat(256)}`), 'userId too_long')
})

test('case 24: a target that the platform refuses gets no route, and the server keeps running', async () => {
  for (const first of [
    'GET /v1/me',
    'GET',
    '',
    'GET /v1/me HTTP/9.9',
    'FOO /v1/me HTTP/1.1',
    '\x16\x03\x01',
  ]) {
    const answer = await sendRaw(
      server.url,
      `${first}\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    )
    expect(answer?.status ?? 400).not.toBe(200)
    expect(answer?.status ?? 400).not.toBe(500)
  }
  const answer = await ask('/v1/me', { more: [`X-Long: ${'x'.repeat(40_000)}`] })
  expect([431, undefined]).toContain(answer?.status)
  expect((await ask('/v1/me'))?.headers.get('x-request-id')).toMatch(UUID_V4)
})

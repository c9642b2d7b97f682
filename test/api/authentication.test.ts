import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createKey, revokeKey } from '../support/keys.ts'
import { newToken } from '../../src/keys/token.ts'
import { RATE_HEADERS, UUID_V4, expectFailure, listRateHeaders } from '../support/answers.ts'
import { newProject } from '../support/project.ts'
import { sendRaw, toRequest } from '../support/raw-http.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
beforeAll(async () => {
  // Tests stand for clients of different addresses.
  server = await boot({ trustedProxies: ['127.0.0.1/32', '2001:db8:ffff::/48'] })
})
afterAll(() => server[Symbol.asyncDispose]())

const UNAUTHORIZED = '{"error":"Unauthorized","message":"Invalid or missing API key"}'

/** Requests /v1/me with these header lines, as the client at `address`. */
function ask(lines: string[], { path = '/v1/me', address = '192.0.2.1', method = 'GET' } = {}) {
  const headers = ['Host: localhost', `X-Forwarded-For: ${address}`, ...lines]
  return sendRaw(server.url, toRequest(`${method} ${path} HTTP/1.1`, headers))
}

async function newDeadKey(projectId: string, death: 'expired' | 'revoked'): Promise<string> {
  const expiresAt = new Date(Date.now() - 1_000)
  const options = { projectId, name: death, ...(death === 'expired' && { expiresAt }) }
  const { id, token } = await createKey(server.sql, options)
  if (death === 'revoked') await revokeKey(server.sql, projectId, id)
  return token
}

test('contract §1 401 has exactly two fields and the same bytes for every cause', async () => {
  const { id, key } = await newProject(server)
  const other = (await newProject(server)).key
  const expired = await newDeadKey(id, 'expired')
  const revoked = await newDeadKey(id, 'revoked')
  const wrongSum = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
  const causes: Record<string, string[]> = {
    'no header': [],
    'an empty header': ['Authorization:'],
    'the scheme alone': ['Authorization: Bearer'],
    'the key alone': [`Authorization: ${key}`],
    'another scheme': [`Authorization: Basic ${btoa(`${key}:`)}`],
    'another scheme with the key': [`Authorization: Token ${key}`],
    'no key at all': ['Authorization: Bearer secret'],
    'a key that is too short': [`Authorization: Bearer ${key.slice(0, -1)}`],
    'a key that is too long': [`Authorization: Bearer ${key}0`],
    'another prefix': [`Authorization: Bearer abc_${key.slice(4)}`],
    'a wrong checksum': [`Authorization: Bearer ${wrongSum}`],
    'an unknown key': [`Authorization: Bearer ${newToken()}`],
    'an expired key': [`Authorization: Bearer ${expired}`],
    'a revoked key': [`Authorization: Bearer ${revoked}`],
    'two headers': [`Authorization: Bearer ${key}`, `Authorization: Bearer ${other}`],
    'the same header twice': [`Authorization: Bearer ${key}`, `Authorization: Bearer ${key}`],
    'two keys in one header': [`Authorization: Bearer ${key}, Bearer ${other}`],
    'two keys after one scheme': [`Authorization: Bearer ${key} ${other}`],
    quotes: [`Authorization: Bearer "${key}"`],
    'a tab': [`Authorization: Bearer\t${key}`],
    'a cookie': [`Cookie: key=${key}`],
    'another header': [`X-API-Key: ${key}`],
  }
  for (const [cause, lines] of Object.entries(causes)) {
    const answer = await ask(lines)
    expect([cause, answer?.status, answer?.text]).toEqual([cause, 401, UNAUTHORIZED])
    expect(answer?.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer?.headers.get('x-request-id')).toMatch(UUID_V4)
    expect(listRateHeaders(answer!)).toEqual([])
  }
})

test('contract §1 a key in the query is refused, with a valid header too', async () => {
  const { key } = await newProject(server)
  for (const query of [
    `key=${key}`,
    `a=b&access_token=${key}`,
    key,
    `q=%20${key}`,
    `q=${newToken()}`,
  ]) {
    const address = '192.0.2.2'
    for (const lines of [[], [`Authorization: Bearer ${key}`]]) {
      const answer = await ask(lines, { path: `/v1/me?${query}`, address })
      expect([query, answer?.status, answer?.text]).toEqual([query, 401, UNAUTHORIZED])
    }
  }
})

test('§5 the scheme is read in any case, and spaces around the key are no part of it', async () => {
  const { key } = await newProject(server)
  for (const value of [`Bearer ${key}`, `bearer ${key}`, `BEARER ${key}`, `Bearer   ${key}  `]) {
    expect((await ask([`authorization: ${value}`]))?.status).toBe(200)
  }
})

test('contract §7 a malformed key is refused without a look at the database', async () => {
  const { key } = await newProject(server)
  const random = key.slice(4, 36)
  await server.sql.begin(async tx => {
    await tx`lock table api_keys in access exclusive mode`
    expect((await ask([`Authorization: Bearer tdg_${random}zzzzzz`]))?.status).toBe(401)
  })
})

test('contract §1 a key without the scope of a route gets 403, with rate headers', async () => {
  const routes = [
    ['events:write', 'POST', '/v1/events'],
    ['events:write', 'POST', '/v1/log'],
    ['events:write', 'POST', '/v1/channels/a'],
    ['events:read', 'GET', '/v1/events'],
    ['events:read', 'GET', '/v1/events/evt_1'],
    ['events:read', 'GET', '/v1/channels'],
    ['identities:write', 'POST', '/v1/identify'],
    ['identities:write', 'DELETE', '/v1/users/ada'],
    ['identities:read', 'GET', '/v1/users/ada'],
  ] as const
  const scopes = [...new Set(routes.map(([scope]) => scope))]
  for (const lacking of scopes) {
    const { request, get } = await newProject(server, { scopes: scopes.filter(s => s !== lacking) })
    for (const [scope, method, path] of routes) {
      const answer = await request(path, { method, ...(method === 'POST' && { body: '' }) })
      if (scope === lacking) {
        expectFailure(answer, 403, 'insufficient_scope')
        expect(answer.body.error).toContain(scope)
        expect(listRateHeaders(answer)).toEqual(RATE_HEADERS)
      } else expect(answer.status).not.toBe(403)
    }
    expect((await get('/v1/me')).status).toBe(200)
  }
})

describe('contract §6 failed authentication is limited to 60 a minute per address:', () => {
  /** What `count` failures of `address` are answered, each status once. */
  async function fail(count: number, address: string): Promise<(number | undefined)[]> {
    const answers = await Promise.all(Array.from({ length: count }, () => ask([], { address })))
    return answers.map(answer => answer?.status)
  }

  test('what would be 401 is 429 then, in the envelope and without rate headers', async () => {
    const address = '198.51.100.1'
    expect(new Set(await fail(60, address))).toEqual(new Set([401]))
    const answer = await ask([], { address })
    expect(answer?.status).toBe(429)
    expect(answer?.body).toEqual({
      success: false,
      error: 'Rate limit exceeded',
      message: expect.any(String),
      requestId: expect.stringMatching(UUID_V4),
    })
    expect(listRateHeaders(answer!)).toEqual([])
    expect(answer?.headers.has('www-authenticate')).toBe(false)
    const seconds = Number(answer?.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(50)
    expect(seconds).toBeLessThanOrEqual(60)
  })

  test('a valid key is never refused by it', async () => {
    const { key } = await newProject(server)
    const address = '198.51.100.2'
    expect((await fail(61, address)).filter(status => status === 429)).toHaveLength(1)
    const answer = await ask([`Authorization: Bearer ${key}`], { address })
    expect(answer?.status).toBe(200)
  })

  test('each IPv4 address and each /64 of IPv6 has its own count', async () => {
    await fail(61, '198.51.100.3')
    expect(await fail(1, '198.51.100.4')).toEqual([401])
    await fail(60, '2001:db8:0:1::1')
    expect(await fail(1, '2001:db8:0:1:ffff::2')).toEqual([429])
    expect(await fail(1, '2001:db8:0:2::1')).toEqual([401])
  })

  test('what a client claims beyond the trusted proxies does not count', async () => {
    const answers = []
    for (let n = 0; n <= 60; n++) {
      answers.push(await ask([], { address: `203.0.113.${n}, 198.51.100.5, 2001:db8:ffff::1` }))
    }
    expect(answers.at(-1)?.status).toBe(429)
    expect(answers.at(-2)?.status).toBe(401)
  })
})

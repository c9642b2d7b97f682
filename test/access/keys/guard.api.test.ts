import { describe, expect, test } from 'bun:test'
import { createKey, revokeKey } from '../../support/worlds/keys.ts'
import { newToken } from '../../../src/access/keys/token.ts'
import { RATE_HEADERS, UUID_V4, expectFailure, listRateHeaders } from '../../support/answers.ts'
import { newProject } from '../../support/worlds/project.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { withServer } from '../../support/servers/server.ts'

// The trusted proxy lets tests act as clients with different addresses.
const server = withServer({ trustedProxies: ['127.0.0.1/32', '2001:db8:ffff::/48'] })

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
    'no space': [`Authorization: Bearer${key}`],
    'a comma': [`Authorization: Bearer ${key},`],
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

test('§5 the scheme is case-insensitive, and spaces around the key are ignored', async () => {
  const { key } = await newProject(server)
  for (const value of [`Bearer ${key}`, `bearer ${key}`, `BEARER ${key}`, `Bearer   ${key}  `]) {
    expect((await ask([`authorization: ${value}`]))?.status).toBe(200)
  }
})

test('contract §7 a malformed key is refused without a database query', async () => {
  const { key } = await newProject(server)
  const random = key.slice(4, 36)
  await server.sql.begin(async tx => {
    await tx`lock table api_keys in access exclusive mode`
    expect((await ask([`Authorization: Bearer tdg_${random}zzzzzz`]))?.status).toBe(401)
  })
})

test('contract §1 a key without the scope of a route gets 403 with rate limit headers', async () => {
  const routes = [
    ['events:write', 'POST', '/v1/events'],
    ['events:write', 'POST', '/v1/log'],
    ['events:write', 'POST', '/v1/channels/a'],
    ['events:read', 'GET', '/v1/events'],
    ['events:read', 'GET', '/v1/events/evt_1'],
    ['events:read', 'GET', '/v1/channels'],
    ['identities:write', 'POST', '/v1/identify'],
    ['identities:erase', 'DELETE', '/v1/users/ada'],
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

describe('contract §6 a failed authentication is 401, however many came before:', () => {
  /** Sends `count` failing requests from `address` at once; returns every status. */
  async function fail(count: number, address: string, lines: () => string[] = () => []) {
    const answers = await Promise.all(
      Array.from({ length: count }, () => ask(lines(), { address })),
    )
    return answers.map(answer => answer?.status)
  }

  /**
   * Returns true if `address` has had 60 failures: the next expired session from there is a 429.
   */
  async function isLimited(address: string): Promise<boolean> {
    const headers = { 'x-forwarded-for': address, cookie: `tidings=${'B'.repeat(43)}` }
    return (await fetch(`${server.url}/api/me`, { headers })).status === 429
  }

  const unknown = () => [`Authorization: Bearer ${newToken()}`]

  test('a missing, a malformed and an unknown key get the same bytes', async () => {
    const address = '198.51.100.1'
    for (const lines of [() => [], () => ['Authorization: Bearer secret'], unknown, unknown]) {
      expect(new Set(await fail(70, address, lines))).toEqual(new Set([401]))
    }
    const answer = await ask(unknown(), { address })
    expect(answer?.text).toBe(UNAUTHORIZED)
    expect(answer?.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer?.headers.has('retry-after')).toBe(false)
    expect(listRateHeaders(answer!)).toEqual([])
  })

  test('a valid key still works during failures', async () => {
    const { key } = await newProject(server)
    const address = '198.51.100.2'
    await fail(61, address)
    const guesses = fail(200, address, unknown)
    const valid = Array.from({ length: 20 }, () => [`Authorization: Bearer ${key}`])
    const answers = await Promise.all(valid.map(lines => ask(lines, { address })))
    expect(answers.map(answer => answer?.status)).toEqual(Array(20).fill(200))
    expect(new Set(await guesses)).toEqual(new Set([401]))
  })

  test('a revoked key is refused during failures, too', async () => {
    const { id } = await newProject(server)
    const { id: keyId, token } = await createKey(server.sql, { projectId: id, name: 'alive' })
    const address = '198.51.100.6'
    await fail(61, address)
    const lines = [`Authorization: Bearer ${token}`]
    expect((await ask(lines, { address }))?.status).toBe(200)
    await revokeKey(server.sql, id, keyId)
    expect((await ask(lines, { address }))?.status).toBe(401)
  })

  test('each IPv4 address and each /64 of IPv6 has its own count', async () => {
    await fail(60, '198.51.100.3')
    expect(await isLimited('198.51.100.4')).toBe(false)
    expect(await isLimited('198.51.100.3')).toBe(true)
    await fail(60, '2001:db8:0:1::1')
    expect(await isLimited('2001:db8:0:1:ffff::2')).toBe(true)
    expect(await isLimited('2001:db8:0:2::1')).toBe(false)
  })

  test('addresses that a client claims beyond the trusted proxies are ignored', async () => {
    for (let n = 0; n < 60; n++) {
      await ask([], { address: `203.0.113.${n}, 198.51.100.5, 2001:db8:ffff::1` })
    }
    expect(await isLimited('198.51.100.5')).toBe(true)
  })
})

import { expect, test } from 'bun:test'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { newSecret } from '../../../src/access/guard/secret.ts'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { lockTable } from '../../support/database-lock.ts'
import { MANAGEMENT_TOKEN } from '../../../src/base/token-form.ts'
import { newAccount, newAddress, PASSWORD } from '../../support/worlds/browser.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { createApi } from '../../support/worlds/signed-in-account.ts'
import { createKey, revokeKey } from '../../support/worlds/keys.ts'
import { newToken } from '../../../src/access/keys/token.ts'
import { UUID_V4, listRateHeaders } from '../../support/answers.ts'
import { newProject, type RequestOptions } from '../../support/worlds/project.ts'
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
    'another scheme': [`Authorization: Basic ${btoa(`${key}:`)}`],
    'no key at all': ['Authorization: Bearer secret'],
    'a wrong checksum': [`Authorization: Bearer ${wrongSum}`],
    'an unknown key': [`Authorization: Bearer ${newToken()}`],
    'an expired key': [`Authorization: Bearer ${expired}`],
    'a revoked key': [`Authorization: Bearer ${revoked}`],
    'two headers': [`Authorization: Bearer ${key}`, `Authorization: Bearer ${other}`],
    'the same header twice': [`Authorization: Bearer ${key}`, `Authorization: Bearer ${key}`],
    'two keys in one header': [`Authorization: Bearer ${key}, Bearer ${other}`],
    'two keys after one scheme': [`Authorization: Bearer ${key} ${other}`],
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
  const path = `/v1/me?a=b&access_token=${key}`
  for (const lines of [[], [`Authorization: Bearer ${key}`]]) {
    const answer = await ask(lines, { path, address: '192.0.2.2' })
    expect([answer?.status, answer?.text]).toEqual([401, UNAUTHORIZED])
  }
})

test('§5 the scheme is case-insensitive, spaces around the key are ignored, and all spellings share a limit', async () => {
  const { key } = await newProject(server, { limit: 4 })
  const values = [`Bearer ${key}`, `bearer ${key}`, `BEARER ${key}`, `Bearer   ${key}  `]
  for (const [nth, value] of values.entries()) {
    const answer = await ask([`authorization: ${value}`], { address: `192.0.2.${nth}` })
    expect([answer?.status, answer?.headers.get('x-ratelimit-remaining')]).toEqual([
      200,
      String(3 - nth),
    ])
  }
})

test('contract §7 keys and cookies of a wrong form cost no query', async () => {
  const locks = [await lockTable(server.sql, 'sessions'), await lockTable(server.sql, 'api_keys')]
  try {
    for (const key of ['tdg_x', `tdg_${'0'.repeat(38)}`]) {
      expect((await ask([`Authorization: Bearer ${key}`]))?.status).toBe(401)
    }
    for (const cookie of [newSecret(128), `${newSecret(256)}x`, 'x'.repeat(43)]) {
      const headers = { cookie: `tidings=${cookie}` }
      expect((await fetch(`${server.url}/api/me`, { headers })).status).toBe(401)
    }
  } finally {
    for (const lock of locks) await lock.release()
  }
})

/** Requests that fail with a status. More than 60 of them make it a 429, except for keys. */
const GUESSES: [kind: string, status: number, path: string, () => RequestOptions][] = [
  ['no key', 401, '/v1/me', () => ({})],
  ['a malformed key', 401, '/v1/me', () => toBearer('secret')],
  ['an unknown key', 401, '/v1/me', () => toBearer(newToken())],
  ['a management token', 401, '/api/token', () => toBearer(MANAGEMENT_TOKEN.newToken())],
  ['a session', 401, '/api/me', () => ({ headers: { cookie: `tidings=${'x'.repeat(43)}` } })],
  ['an invite', 404, '/api/invites/look', () => toPost({ token: 'x'.repeat(43) })],
  ['an invite to accept', 404, '/api/invites/accept', () => toPost({ ...EVE, token: 'x' })],
  ['a reset link', 404, '/api/reset', () => toPost({ token: 'x', password: PASSWORD })],
]
const EVE = { name: 'Eve', email: 'eve@example.com', password: PASSWORD }
const toBearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
const toPost = (json: object) => ({ method: 'POST', json })

test('contract §6 every guess counts for its network, which what is valid does not notice', async () => {
  const tryOut = async ([kind, status, path, toRequest]: (typeof GUESSES)[number]) => {
    const account = await newAccount(server)
    const project = await newProject(server)
    const token = await newManagementToken(server, { accountId: account.uuid })
    const link = await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
    const address = newAddress()
    let nth = 0
    const ask = async (path: string, { headers, ...more }: RequestOptions) => {
      // Addresses that a client claims beyond the trusted proxies are ignored.
      const forwarded = `203.0.113.${nth++}, ${address}, 2001:db8:ffff::1`
      const all = { ...headers, 'x-forwarded-for': forwarded }
      return (await createApi(server.url).request(path, { ...more, headers: all })).status
    }
    const guesses = await Promise.all(Array.from({ length: 60 }, () => ask(path, toRequest())))
    expect([kind, ...new Set(guesses)]).toEqual([kind, status])
    const [late, session, ...valid] = await Promise.all([
      ask(path, toRequest()),
      ask('/api/me', { headers: { cookie: `tidings=${'y'.repeat(43)}` } }),
      ask('/v1/me', toBearer(project.key)),
      ask('/api/token', toBearer(token.secret)),
      ask('/api/session', {
        ...toPost({ email: account.email, password: PASSWORD }),
        headers: { cookie: `tidings=${'z'.repeat(43)}` },
      }),
      // A refused password gets a 400 only with a valid link.
      ask('/api/reset', toPost({ token: link.token, password: '1' })),
    ])
    // Of a key, 429 means its rate limit and nothing else.
    const isOfBearer = path === '/v1/me' || path === '/api/token'
    expect([kind, late, session]).toEqual([kind, isOfBearer ? 401 : 429, 429])
    expect([kind, ...valid]).toEqual([kind, 200, 200, 200, 400])
    await revokeKey(server.sql, project.id, project.keyId)
    expect([kind, await ask('/v1/me', toBearer(project.key))]).toEqual([kind, 401])
  }
  await Promise.all(GUESSES.map(tryOut))
})

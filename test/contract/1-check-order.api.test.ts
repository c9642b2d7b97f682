import { describe, expect, test } from 'bun:test'
import {
  RATE_HEADERS,
  UUID_V4,
  expectFailure,
  expectIssues,
  listRateHeaders,
} from '../support/answers.ts'
import { newProject, type Answered } from '../support/worlds/project.ts'
import { sendRaw, toRequest } from '../support/clients/raw-http.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { revokeKey } from '../support/worlds/keys.ts'

const server = withSharedServer()

const event = { channelName: 'payments', title: 'New payment' }
const tooLarge = new Uint8Array(256 * 1024 + 1).fill(0xff)
const asJson = { 'content-type': 'application/json' }

/** Fails every check from authentication on. */
const hopeless = {
  method: 'POST',
  body: tooLarge,
  headers: { authorization: 'Bearer wrong', 'content-type': 'text/plain' },
}

describe('contract §1 of two failed checks the earlier one answers:', () => {
  test('a missing route before authentication', async () => {
    const { request } = await newProject(server)
    expectFailure(await request('/v1/event', hopeless), 404, 'not_found')
    expectFailure(await request('/v1', { headers: { authorization: '' } }), 404, 'not_found')
  })

  test('a wrong method before authentication', async () => {
    const { request } = await newProject(server)
    const answer = await request('/v1/identify', { ...hopeless, method: 'PUT' })
    expectFailure(answer, 405, 'method_not_allowed')
  })

  test('authentication before the rate limit', async () => {
    const { id, keyId, get } = await newProject(server, { limit: 1 })
    await get('/v1/me')
    const { status, body } = await get('/v1/me')
    expect(status).toBe(429)
    expect(body).toEqual({
      success: false,
      error: 'Rate limit exceeded',
      message: expect.any(String),
      requestId: expect.stringMatching(UUID_V4),
    })
    await revokeKey(server.sql, id, keyId)
    expect((await get('/v1/me')).status).toBe(401)
  })

  test('the rate limit before the scope', async () => {
    const { post } = await newProject(server, { limit: 1, scopes: ['events:read'] })
    expect((await post('/v1/events', event)).status).toBe(403)
    expect((await post('/v1/events', event)).status).toBe(429)
  })

  test('the scope before the content type', async () => {
    const { key, request } = await newProject(server, { scopes: ['events:read'] })
    const headers = { ...hopeless.headers, authorization: `Bearer ${key}` }
    expectFailure(await request('/v1/events', { ...hopeless, headers }), 403, 'insufficient_scope')
  })

  test('the content type before the size', async () => {
    const { key, request } = await newProject(server)
    const headers = { ...hopeless.headers, authorization: `Bearer ${key}` }
    const answer = await request('/v1/events', { ...hopeless, headers })
    expectFailure(answer, 415, 'unsupported_media_type')
  })

  test('the size before the encoding', async () => {
    const { request } = await newProject(server)
    const answer = await request('/v1/events', { method: 'POST', body: tooLarge, headers: asJson })
    expectFailure(answer, 413, 'payload_too_large')
  })

  test('the encoding before the JSON, the JSON before the schema', async () => {
    const { request } = await newProject(server)
    const send = (body: Uint8Array<ArrayBuffer>) =>
      request('/v1/events', { method: 'POST', body, headers: asJson })
    expectIssues(await send(new Uint8Array([0x7b, 0xff])), ' invalid_encoding')
    expectIssues(await send(new TextEncoder().encode('{"title":1,')), ' invalid_json')
  })

  test('the schema before the Idempotency-Key', async () => {
    const { post, get } = await newProject(server)
    const key = { 'Idempotency-Key': 'once' }
    expect((await post('/v1/events', event, key)).status).toBe(201)
    expectIssues(await post('/v1/events', { title: 'x' }, key), 'channelName required')
    expectIssues(
      await post('/v1/events', {}, { 'Idempotency-Key': 'é' }),
      'channelName required',
      'title required',
    )
    const reused = await post('/v1/events', { ...event, title: 'x' }, key)
    expectFailure(reused, 422, 'idempotency_key_reused')
    expect((await get('/v1/events')).body.data.items).toHaveLength(1)
  })
})

test('contract §1 405 lists the methods of the path in Allow, HEAD and OPTIONS included', async () => {
  const { key, request } = await newProject(server)
  for (const [path, allowed] of [
    ['/v1/events', ['GET', 'POST']],
    ['/v1/identify', ['POST']],
    ['/v1/log', ['POST']],
    ['/v1/users/ada', ['DELETE', 'GET']],
    ['/v1/channels/a', ['POST']],
    ['/v1/me', ['GET']],
    ['/ntfy/a', ['POST', 'PUT']],
    ['/mcp', ['POST']],
  ] as const) {
    const headers = ['Host: localhost', `Authorization: Bearer ${key}`]
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE']) {
      if ((allowed as readonly string[]).includes(method)) continue
      const answer = await sendRaw(server.url, toRequest(`${method} ${path} HTTP/1.1`, headers))
      expect(`${method} ${answer?.status}`).toBe(`${method} 405`)
      expect(answer?.headers.get('allow')?.split(', ').sort()).toEqual([...allowed])
      expect(answer?.headers.get('x-request-id')).toMatch(UUID_V4)
      if (method !== 'HEAD') expectFailure(answer, 405, 'method_not_allowed')
    }
  }
  const preflight = await request('/v1/events', {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  expect(preflight.status).toBe(405)
  expect(listCorsHeaders(preflight)).toEqual([])
})

test('contract §1 X-Request-Id, and headers of browsers, caches and proxies, are ignored', async () => {
  const { request } = await newProject(server)
  const id = crypto.randomUUID()
  for (const headers of [
    { 'X-Request-Id': id },
    { Origin: 'null', Cookie: 'a={"b":1}; session=x', Accept: 'text/html' },
    { 'If-None-Match': '*', Range: 'bytes=0-1', 'Accept-Encoding': 'br, gzip' },
    { 'X-HTTP-Method-Override': 'DELETE', 'X-Forwarded-Host': 'evil.example' },
  ] as Record<string, string>[]) {
    const answer = await request('/v1/me', { headers })
    expect([headers, answer.status]).toEqual([headers, 200])
    expect(answer.headers.get('x-request-id')).not.toBe(id)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(listCorsHeaders(answer)).toEqual([])
  }
})

test('contract §1 a 503 of the execution has Retry-After and rate limit headers, a 503 of the rate limit has none', async () => {
  const { id, post } = await newProject(server)
  await post('/v1/events', event)
  await server.sql.begin(async tx => {
    await tx`select from event_logs where project_id = ${id} for update`
    const answer = await post('/v1/events', event)
    expectFailure(answer, 503, 'unavailable')
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(listRateHeaders(answer)).toEqual(RATE_HEADERS)
  })
  await server.sql.begin(async tx => {
    await tx`select from rate_windows for update`
    const answer = await post('/v1/events', event)
    expectFailure(answer, 503, 'unavailable')
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(listRateHeaders(answer)).toEqual([])
  })
  expect((await post('/v1/events', event)).body.data.seq).toBe(2)
})

function listCorsHeaders({ headers }: Answered): string[] {
  return [...headers.keys()].filter(name => name.startsWith('access-control-') || name === 'vary')
}

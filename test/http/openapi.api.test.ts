import { Value } from '@sinclair/typebox/value'
import { beforeAll, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { ACTIONS } from '../../src/access/guard/permissions.ts'
import { SCOPES, type Scope } from '../../src/access/keys/schema.ts'
import { expectFailure, listRateHeaders, RATE_HEADERS } from '../support/answers.ts'
import { listOperations } from '../support/operations.ts'
import { API } from '../support/contracts.ts'
import { checkDeclared, type Exchange } from '../support/conformance.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { withServer, withSharedServer } from '../support/servers/server.ts'
import { makeFolder } from '../support/scratch.ts'
import { scaled } from '../support/until.ts'

const BASE_URL = 'https://tidings.acme.dev/base'

const server = withServer({ baseUrl: BASE_URL })
const plain = withSharedServer()
// `any`: the tests themselves check every field that they read.
let document: any
let management: any
beforeAll(async () => {
  document = await (await fetch(`${server.url}/openapi.json`)).json()
  management = await (await fetch(`${server.url}/api/management.json`)).json()
})

test('§4.3 every path of the document gives the same answer, without a key', async () => {
  const [first, ...others] = await Promise.all(
    ['/openapi.json', '/api/openapi.json', '/swagger/json'].map(async path => {
      const { status, headers, text } = await read(path)
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
      return { status, headers: toComparable(headers), text }
    }),
  )
  expect(first).toMatchObject({
    status: 200,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    },
  })
  for (const other of others) expect(other).toEqual(first!)
})

test('/swagger is a page with its own policy, which names no other host', async () => {
  const host = new URL(BASE_URL).host
  const { status, headers, text } = await read('/swagger', { host })
  expect(status).toBe(200)
  expect(toComparable(headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
  expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  const policy = headers.get('content-security-policy') ?? ''
  for (const part of ["default-src 'none'", "frame-ancestors 'none'", "script-src 'self'"])
    expect(policy.split('; ')).toContainEqual(expect.stringContaining(part))
  const sources = policy.split('; ').flatMap(text => text.split(' ').slice(1))
  expect(sources.filter(source => !/^('.+'|data:)$/.test(source))).toEqual([])
  expect(policy).not.toMatch(/script-src [^;]*'unsafe-inline'/)

  const [, script = ''] = /<script src="([^"]+)"/.exec(text) ?? []
  expect(script).toMatch(/^\/assets\/[0-9a-f]{10}\/scalar\.js$/)
  for (const coding of ['br', 'gzip', 'identity']) {
    const file = await fetch(server.url + script, { headers: { 'accept-encoding': coding } })
    expect(file.headers.get('cache-control')).toContain('immutable')
    expect((await file.text()).length).toBeGreaterThan(1_000_000)
  }
  expect((await read('/sw.js', { host })).text).not.toContain('scalar')

  expect((await read('/swagger', { host: 'evil.example' })).status).toBe(421)
  const again = await read('/swagger', { host, 'if-none-match': headers.get('etag') ?? '' })
  expect(again.status).toBe(304)
})

test('§9 the document is OpenAPI 3.1, version 1.0.0, licensed under AGPL-3.0, and names the server', async () => {
  expect(document.openapi).toMatch(/^3\.1\.\d$/)
  expect(document.info).toMatchObject({
    title: 'Tidings',
    version: '1.0.0',
    license: { name: 'AGPL-3.0', identifier: 'AGPL-3.0-only' },
  })
  expect(document.servers).toEqual([{ url: BASE_URL }])
  const other: any = await (await fetch(`${plain.url}/openapi.json`)).json()
  expect(other.servers).toEqual([{ url: `http://localhost:${plain.server.port}` }])
})

test.each(['/openapi.json', '/api/management.json'])(
  'contract §8 redocly reports nothing on %s with its strictest rules',
  async path => {
    const folder = makeFolder()
    const file = join(folder, 'document.json')
    await writeFile(file, (await read(path)).text)
    const cli = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js')
    const child = spawn(
      process.execPath,
      [cli, 'lint', file, '--extends=recommended-strict', '--format=json'],
      {
        cwd: folder,
        env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      },
    )
    const report = JSON.parse(await readAll(child.stdout))
    await rm(folder, { recursive: true })
    expect(report.problems).toEqual([])
    expect(report.totals).toEqual({ errors: 0, warnings: 0, ignored: 0 })
  },
  scaled(90_000),
)

test('contract §8 validation against the OpenAPI schema reports nothing, and null is a type', async () => {
  for (const one of [document, management]) {
    expect(await new Validator().validate(structuredClone(one))).toEqual({ valid: true })
    expect(JSON.stringify(one)).not.toContain('"nullable"')
  }
})

test('the management document has every route of /api with its permission, and nothing else', () => {
  const described = listOperations(management).map(({ method, path, ...operation }) => ({
    method,
    path: path.replace(/\{(\w+)\}/g, ':$1'),
    action: operation['x-action'],
  }))
  const mounted = API.map(({ method, path, action }) => ({ method, path, action }))
  expect(described.sort(byRoute)).toEqual(mounted.sort(byRoute))
  expect(described.filter(({ path }) => !path.startsWith('/api/'))).toEqual([])
  expect(described.map(({ action }) => action).filter(action => !(action in ACTIONS))).toEqual([])
})

// Redocly knows the rest of what a document needs.
test('every management operation has a summary in words, and one tag', () => {
  for (const { operationId, summary, tags } of listOperations(management)) {
    expect([operationId, summary]).toEqual([operationId, expect.stringMatching(/^[A-Z].*[^.]$/)])
    expect([operationId, tags.length]).toEqual([operationId, 1])
  }
})

test('every management operation with a body has an example, which its schema accepts', () => {
  const bodies = new Map(API.map(({ method, path, body }) => [`${method} ${path}`, body]))
  for (const { operationId, method, path, requestBody } of listOperations(management)) {
    if (!requestBody) continue
    const { example } = requestBody.content['application/json']
    const body = bodies.get(`${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`)
    expect([operationId, typeof example]).toEqual([operationId, 'object'])
    expect([operationId, [...Value.Errors(body!, example)].map(({ path }) => path)]).toEqual([
      operationId,
      [],
    ])
  }
})

test('contract §8 every operation declares all of its statuses', () => {
  const write = '400 401 403 408 409 413 415 422 429 500 503'
  const list = '400 401 403 429 500 503'
  const read = '400 401 403 404 429 500 503'
  const declared = listOperations(document).map(({ operationId, responses }) => [
    operationId,
    Object.keys(responses).sort().join(' '),
  ])
  expect(Object.fromEntries(declared)).toEqual({
    identify: `200 ${write}`,
    createEvent: `201 ${write}`,
    logEvent: `201 ${write}`,
    sendText: `201 ${write}`,
    listEvents: `200 ${list}`,
    getEvent: `200 ${read}`,
    getAnswer: `200 ${read}`,
    listThreads: `200 ${list}`,
    listChannels: `200 ${list}`,
    getUser: `200 ${read}`,
    findUser: `200 ${read}`,
    eraseUser: `200 202 ${read}`,
    eraseFoundUser: `200 202 ${read}`,
    getMe: '200 400 401 429 500 503',
    createSilence: `201 ${write}`,
    endSilence: `200 ${read}`,
  })
})

test('contract §8 the document has exactly the paths and methods of the server', async () => {
  const { request } = await newProject(server)
  for (const [path, item] of Object.entries(document.paths)) {
    const real = path.replace(/\{\w+\}/g, 'x')
    const methods = Object.keys(item as object).map(method => method.toUpperCase())
    const refused = await request(real, { method: 'PATCH' })
    expect(refused.status).toBe(405)
    expect(refused.headers.get('allow')?.split(', ').sort()).toEqual(methods.sort())
    for (const method of methods) {
      const stranger = await createRequests(server.url, 'wrong').request(real, { method })
      expect([method, real, stranger.status]).toEqual([method, real, 401])
    }
  }
})

test('contract §8 the examples of the document are accepted', async () => {
  const { post, request } = await newProject(server)
  // The example of a silence names it.
  await post('/v1/events', { channelName: 'ops', title: 't' })
  for (const { path, method, operationId, requestBody } of listOperations(document)) {
    for (const [type, { example }] of Object.entries<any>(requestBody?.content ?? {})) {
      if (example === undefined) continue
      const { status } = await request(path.replace('{name}', 'payments'), {
        method,
        body: typeof example === 'string' ? example : JSON.stringify(example),
        headers: { 'content-type': type },
      })
      expect([operationId, status]).toEqual([operationId, operationId === 'identify' ? 200 : 201])
    }
  }
})

test('contract §9 each operation names the scope that its key needs', async () => {
  for (const { operationId, method, path, security } of listOperations(document)) {
    const [scope] = security[0].apiKey
    const ask = async (scopes: Scope[]) => {
      const { request } = await newProject(server, { scopes })
      return request(path.replace(/\{\w+\}/g, 'x'), { method })
    }
    const { status } = await ask(scope ? [scope] : [])
    expect([operationId, [401, 403].includes(status)]).toEqual([operationId, false])
    if (!scope) continue
    const refused = await ask(SCOPES.filter(one => one !== scope))
    expectFailure(refused, 403, 'insufficient_scope')
    expect(refused.body.error).toContain(scope)
    expect(listRateHeaders(refused)).toEqual(RATE_HEADERS)
  }
})

test('§7 all other tests check their answers strictly against the document', async () => {
  const url = `${server.url}/v1/me`
  const { get } = await newProject(server)
  const { status, headers, text } = await get('/v1/me')
  const refuse = async (changes: Partial<Exchange>, added: Record<string, string> = {}) => {
    const changed = new Headers(headers)
    for (const [name, value] of Object.entries(added)) changed.set(name, value)
    const exchange = { url, method: 'GET', status, headers: changed, text, ...changes }
    expect(await checkDeclared(exchange).catch((error: Error) => error.message)).toMatch(/^Not as/)
  }
  await refuse({ text: text.replace('"limit"', '"limits"') })
  await refuse({ text: text.replace('"success":true', '"success":true,"more":1') })
  await refuse({ text: text.replace(/"requestId":"[^"]+"/, '"requestId":"x"') })
  await refuse({ status: 201 })
  await refuse({ status: 418 })
  await refuse({ method: 'PUT' })
  await refuse({ url: `${server.url}/v1/nothing` })
  await refuse({ headers: new Headers({ 'content-type': 'application/json; charset=utf-8' }) })
  await refuse({}, { 'x-ratelimit-remaining': 'many' })
  await refuse({}, { 'x-idempotent-replay': 'true' })
  await refuse({}, { 'cache-control': 'public' })
  await refuse({}, { 'content-type': 'text/html' })
})

interface Route {
  method: string
  path: string
}

function byRoute(a: Route, b: Route): number {
  return `${a.path} ${a.method}` < `${b.path} ${b.method}` ? -1 : 1
}

async function read(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, { headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Returns the headers that do not differ between two requests. */
function toComparable(headers: Headers): Record<string, string> {
  const { date, 'x-request-id': id, ...rest } = Object.fromEntries(headers)
  return rest
}

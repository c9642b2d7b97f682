import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { checkDeclared, type Exchange } from '../support/conformance.ts'
import { createRequests, newProject } from '../support/project.ts'
import { boot, type Booted } from '../support/server.ts'

const BASE_URL = 'https://tidings.acme.dev/base'

let server: Booted
// What the tests look into is what they check.
let document: any
beforeAll(async () => {
  server = await boot({ baseUrl: BASE_URL })
  document = await (await fetch(`${server.url}/openapi.json`)).json()
})
afterAll(() => server[Symbol.asyncDispose]())

test('§4.3 both spellings of the path answer the same document, without a key', async () => {
  const answers = await Promise.all(
    ['/openapi.json', '/api/openapi.json'].map(path => fetch(`${server.url}${path}`)),
  )
  for (const { status, headers } of answers) {
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
  }
  const [one, two] = await Promise.all(answers.map(answer => answer.text()))
  expect(one).toBe(two ?? '')
})

test('§9 it is OpenAPI 3.1, version 1.0.0, licensed under AGPL-3.0, and names the server', async () => {
  expect(document.openapi).toMatch(/^3\.1\.\d$/)
  expect(document.info).toMatchObject({
    title: 'Tidings',
    version: '1.0.0',
    license: { name: 'AGPL-3.0', identifier: 'AGPL-3.0-only' },
  })
  expect(document.servers).toEqual([{ url: BASE_URL }])
  await using plain = await boot()
  const other: any = await (await fetch(`${plain.url}/openapi.json`)).json()
  expect(other.servers).toEqual([{ url: `http://localhost:${plain.server.port}` }])
})

test('contract §8 redocly has nothing to report, at its strictest', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'openapi-'))
  const file = join(folder, 'openapi.json')
  await writeFile(file, JSON.stringify(document, null, 2))
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
}, 90_000)

test('contract §8 the OpenAPI schema has nothing to report', async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result).toEqual({ valid: true })
})

test('contract §8 null is a type, never nullable', () => {
  expect(JSON.stringify(document)).not.toContain('"nullable"')
  expect(document.components.schemas.Event.properties.userId.type).toEqual(['string', 'null'])
})

test('contract §8 every operation declares every status that it can answer with', () => {
  const any = ['401', '429', '500', '503']
  const body = ['400', '403', '408', '409', '413', '415', '422', ...any]
  const declared = listOperations().map(({ operationId, responses }) => [
    operationId,
    Object.keys(responses).sort(),
  ])
  expect(Object.fromEntries(declared)).toEqual({
    identify: ['200', ...body].sort(),
    createEvent: ['201', ...body].sort(),
    logEvent: ['201', ...body].sort(),
    sendText: ['201', ...body].sort(),
    listEvents: ['200', '400', '403', ...any].sort(),
    getEvent: ['200', '400', '403', '404', ...any].sort(),
    listChannels: ['200', '400', '403', ...any].sort(),
    getUser: ['200', '400', '403', '404', ...any].sort(),
    eraseUser: ['200', '400', '403', '404', ...any].sort(),
    getMe: ['200', ...any].sort(),
  })
})

test('contract §8 the paths and methods of the document are those of the server', async () => {
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
  const { request } = await newProject(server)
  for (const { path, method, operationId, requestBody } of listOperations()) {
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
  for (const { operationId, method, path, security } of listOperations()) {
    const [scope] = security[0].apiKey
    const { request } = await newProject(server, { scopes: scope ? [scope] : [] })
    const { status } = await request(path.replace(/\{\w+\}/g, 'x'), { method })
    expect([operationId, [401, 403].includes(status)]).toEqual([operationId, false])
  }
})

test('§7 every other test checks its answers against the document, strictly', async () => {
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

function listOperations(): any[] {
  return Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
  )
}

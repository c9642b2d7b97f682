import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { createSessionGuard } from '../../../src/access/guard/guard.ts'
import { listCredentials } from '../../../src/access/guard/authorize.ts'
import { ACTIONS, type Action } from '../../../src/access/guard/permissions.ts'
import { createCookies } from '../../../src/access/guard/secret.ts'
import { createKeyGuard } from '../../../src/access/keys/guard.ts'
import { succeed } from '../../../src/http/call.ts'
import { createFailedAuthentications } from '../../../src/http/limits/failed-authentications.ts'
import { toSite } from '../../../src/http/site.ts'
import { createServerApp } from '../../../src/server/app.ts'
import { listApiFeatures, listV1Features } from '../../../src/server/features.ts'
import { healthRoutes } from '../../../src/server/health.ts'

const site = toSite('http://localhost')
/**
 * Admits nobody. A request that passes a guard ends as a 500, for features get no other dependency.
 */
const gate = {
  site,
  cookiesOf: createCookies(false),
  failedAuthentications: createFailedAuthentications(),
  admission: {},
  providers: [],
  toAddress: () => '192.0.2.1',
}
const app = createServerApp({
  site,
  securityContacts: [],
  sourceUrl: 'https://git.example.com/tidings',
  health: healthRoutes({} as never),
  pings: new Elysia(),
  openid: [],
  api: listApiFeatures(gate as never),
  v1: listV1Features(gate as never),
})
/** Public documents below /api and /v1. */
const DOCUMENTS = new Set(['/api/openapi.json', '/api/management.json'])

const routes = app.routes.map(({ method, path, hooks }) => ({ method, path, ...hooks.detail }))
const below = (prefix: string) =>
  routes.filter(({ path }) => path.startsWith(prefix) && !DOCUMENTS.has(path))
const V1 = [...below('/v1'), ...below('/mcp')].map(
  route => [`${route.method} ${route.path}`, route] as const,
)
/** The routes of ntfy. The page at `/` is another route. */
const NTFY = routes
  .filter(({ path, method }) => /^\/ntfy(\/|$)/.test(path) || (path === '/' && method !== 'GET'))
  .map(route => [`${route.method} ${route.path}`, route] as const)
const API = below('/api').map(route => [`${route.method} ${route.path}`, route] as const)

async function ask({ method, path }: { method: string; path: string }) {
  const headers = { host: 'localhost', origin: site.url }
  const url = site.url + path.replace(/:\w+/g, 'x')
  const response = await app.fetch(new Request(url, { method, headers }))
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('every route for programs is below /v1, /api, /ntfy, /in or /mcp; other routes serve files alone', () => {
  const others = routes.filter(
    ({ path }) => !/^\/((v1|api)\/|mcp$)/.test(path) || DOCUMENTS.has(path),
  )
  for (const { method, path, hide } of others) {
    if (NTFY.some(([name]) => name === `${method} ${path}`) || path === '/in/:token') continue
    expect([path, method, hide]).toEqual([path, 'GET', true])
  }
  expect([V1.length >= 10, API.length >= 60]).toEqual([true, true])
})

describe.each([...V1, ...NTFY])('contract §1 %s', (_, route) => {
  test('needs an API key', async () => {
    const { security, hide } = route
    expect([Object.keys(security[0]), security.length, hide]).toEqual([['apiKey'], 1, undefined])
    const message = 'Invalid or missing API key'
    const body = V1.some(([, one]) => one === route)
      ? { error: 'Unauthorized', message }
      : { code: 40101, http: 401, error: message }
    expect(await ask(route)).toEqual({ status: 401, body })
  })
})

describe.each(API)('contract §12 %s', (_, route) => {
  test('needs a session or a token, and the permissions decide on its action', async () => {
    const action = route['x-action'] as Action
    expect([action, action in ACTIONS, route.hide]).toEqual([action, true, undefined])
    const isOpen = ACTIONS[action].on === 'anyone'
    const credentials = listCredentials(action)
    expect(credentials.length > 0).toBe(!isOpen)
    // Generated clients take the first credential that they have: the token, where it is accepted.
    const expected = ['token' as const, 'session' as const].filter(one => credentials.includes(one))
    expect(route.security).toEqual(expected.map(credential => ({ [credential]: [] })))
    if (!isOpen) expect(await ask(route)).toMatchObject({ status: 401 })
  })
})

// The type errors are the test. No request reaches these routes.
describe('a route can only answer', () => {
  const keyGuard = createKeyGuard(gate as never)
  const sessionGuard = createSessionGuard(gate as never)

  test('with an API key when it declares a scope', () => {
    new Elysia()
      .use(keyGuard)
      .get('/declared', ({ call }) => succeed(call, 200, call.key), { scope: 'events:read' })
      // @ts-expect-error It declares no scope.
      .get('/undeclared', ({ call }) => succeed(call, 200, {}))
      // @ts-expect-error No guard admitted the exchange.
      .get('/exchange', ({ exchange }) => succeed(exchange, 200, {}))
      // @ts-expect-error There is no such scope.
      .get('/misspelled', ({ call }) => succeed(call, 200, {}), { scope: 'event:read' })
  })

  test('with a session when it declares an action', () => {
    new Elysia()
      .use(sessionGuard)
      .get('/p/:projectId', ({ call }) => succeed(call, 200, { id: call.projectId }), {
        project: 'project.read',
      })
      // @ts-expect-error It declares no action.
      .get('/undeclared', ({ call }) => succeed(call, 200, {}))
      // @ts-expect-error No guard admitted the exchange.
      .get('/exchange', ({ exchange }) => succeed(exchange, 200, {}))
      .get('/elsewhere', () => new Response(), {
        // @ts-expect-error The action is one of a project.
        organization: 'project.read',
      })
      // @ts-expect-error An account is of no project.
      .get('/account', ({ call }) => succeed(call, 200, { id: call.projectId }), {
        account: 'account.read',
      })
  })
})

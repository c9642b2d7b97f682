import { describe, expect, test } from 'bun:test'
import type { AppShell } from '../../src/dashboard/app/worker/scope.ts'
import { boot, withSharedServer } from '../support/servers/server.ts'

const server = withSharedServer()

const PATHS = [
  ...['/', '/setup', '/sign-in', '/invite', '/reset', '/p/prj_x', '/p/prj_x/start'],
  ...[
    '/p/prj_x/e/evt_x',
    '/e/evt_x',
    '/p/prj_x/users',
    '/p/prj_x/insights',
    '/p/prj_x/users/a%2Fb%20c%25',
  ],
]

/** Requests a path; the body stays as it came over the wire, encoded. */
function get(path: string, options: RequestInit = {}) {
  return fetch(server.url + path, { redirect: 'manual', ...options })
}

describe('reliability §9 the page of the application', () => {
  test('is a 404 page for browsers on unknown paths; programs get JSON', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const page = await get('/p/prj_x/nowhere', { headers: { accept } })
    expect([page.status, await page.text()]).toEqual([404, await (await get('/')).text()])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    const asked = [
      get('/p/prj_x/nowhere'),
      get('/p/prj_x/nowhere', { method: 'POST', headers: { accept } }),
      ...['/v1/nowhere', '/api/nowhere', '/assets/nowhere.js', '/v1'].map(path =>
        get(path, { headers: { accept } }),
      ),
      get('/nowhere', { headers: { accept, host: 'elsewhere.example' } }),
    ]
    for (const { status, headers } of await Promise.all(asked)) {
      expect([headers.get('content-type'), status < 400]).toEqual([
        'application/json; charset=utf-8',
        false,
      ])
    }
  })

  test.each(PATHS)('is served at %s and revalidated on every visit', async path => {
    const { status, headers } = await get(path)
    const again = await get(path, { headers: { 'if-none-match': headers.get('etag') ?? '' } })
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-cache',
    ])
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  test('loads from this server alone, executes no text, and cannot be framed', async () => {
    const { headers } = await get('/')
    const { host } = new URL(server.server.url)
    expect(headers.get('content-security-policy')?.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "font-src 'self'",
      `connect-src 'self' ws://${host}`,
      "manifest-src 'self'",
      "worker-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      'trusted-types worker warm',
    ])
    const said = ['x-content-type-options', 'referrer-policy', 'x-frame-options']
    expect(said.map(name => headers.get(name))).toEqual(['nosniff', 'no-referrer', 'DENY'])
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    expect(headers.get('permissions-policy')).toContain('camera=()')
    expect(headers.get('strict-transport-security')).toBeNull()
  })

  test('over https the policy covers the page and its sockets', async () => {
    await using secure = await boot({ baseUrl: 'https://tidings.example' })
    const { headers } = await fetch(secure.url, { headers: { host: 'tidings.example' } })
    expect(headers.get('content-security-policy')).toContain(
      "connect-src 'self' wss://tidings.example;",
    )
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
  })

  test('has no inline script or style, and every file that it names is immutable', async () => {
    const html = await (await get('/')).text()
    expect(html).toContain('<html lang="en" dir="ltr">')
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?:/i)
    const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, url = '']) => url)
    expect(files.length).toBeGreaterThan(3)
    for (const url of files) {
      const { status, headers } = await get(url)
      expect([url, status]).toEqual([url, 200])
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
  })

  test('its service worker is revalidated on every visit, and may connect to this server alone', async () => {
    const { status, headers } = await get('/sw.js')
    const said = ['content-type', 'cache-control', 'content-security-policy']
    expect([status, ...said.map(name => headers.get(name))]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'no-cache',
      "default-src 'none'; frame-ancestors 'none'; connect-src 'self'; img-src 'self'",
    ])
    const again = await get('/sw.js', { headers: { 'if-none-match': headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  })

  test('its service worker caches existing files, and no page but this one', async () => {
    const code = await (await get('/sw.js')).text()
    const shell = JSON.parse(/^self\.SHELL=(\{.*?\});/.exec(code)?.[1] ?? '') as AppShell
    expect(shell.files).toEqual(expect.arrayContaining(['main.js', 'app.css', 'tidings.svg']))
    // A worker of an earlier build shows notifications with its icons.
    const icons = ['icon-192.png', 'badge.png'].flatMap(name => [name, `../earlier/${name}`])
    for (const name of [...shell.files, ...icons]) {
      expect([name, (await get(`/assets/${shell.build}/${name}`)).status]).toEqual([name, 200])
    }
    expect(shell.pathPrefixes).toEqual(expect.arrayContaining(['', 'p', 'e', 'notifications']))
    for (const place of ['docs', 'api', 'v1', 'openapi.json', 'healthz', 'assets']) {
      expect(shell.pathPrefixes).not.toContain(place)
    }
  })

  test("is served for the server's own host name alone", async () => {
    expect((await get('/sign-in', { headers: { host: 'evil.example' } })).status).toBe(421)
  })

  test.each(['/settings', '/p', '/p/', '/sign-in/', '/p/a/b', '/assets/main.js'])(
    'is not at %s: 404',
    async path => {
      expect((await get(path)).status).toBe(404)
    },
  )

  test('accepts GET alone: 405', async () => {
    const answer = await get('/p/prj_x', { method: 'POST' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { parseConfig } from '../../src/base/config.ts'
import { bindPort } from '../../src/server/bound-port.ts'
import { listen } from '../support/loopback.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'

test('requests that arrive before the routes exist are answered when they do', async () => {
  const front = bindPort(parseConfig({ PORT: '0' }, String), false)
  try {
    const url = `http://127.0.0.1:${front.listener.port}`
    const early = fetch(`${url}/v1/me`)
    const handshake = await fetch(`${url}/api/feed`, {
      headers: { upgrade: 'websocket', connection: 'Upgrade' },
    })
    expect([handshake.status, handshake.headers.get('retry-after')]).toEqual([503, '1'])
    const never = (): never => {
      throw new Error('Unexpected handshake')
    }
    const feed = { upgrade: never, open: never, message: never, close: never }
    front.attach({ fetch: () => new Response('here'), feed })
    expect(await (await early).text()).toBe('here')
  } finally {
    await front.listener.stop()
  }
})

test('a request that was refused during the start is not done after it', async () => {
  const front = bindPort(parseConfig({ PORT: '0' }, String), false)
  const done: string[] = []
  try {
    const url = `http://127.0.0.1:${front.listener.port}`
    expect((await fetch(`${url}/v1/events`, { method: 'POST' })).status).toBe(503)
    const respond = (request: Request) => {
      done.push(request.method)
      return new Response()
    }
    front.attach({ fetch: respond } as unknown as Parameters<typeof front.attach>[0])
    await fetch(`${url}/v1/events`, { method: 'PUT' })
    expect(done).toEqual(['PUT'])
  } finally {
    await front.listener.stop()
  }
})

test('a stop refuses new requests of programs, and still serves pages and health checks', async () => {
  const front = bindPort(parseConfig({ PORT: '0' }, String), false)
  try {
    const never = (): never => {
      throw new Error('Unexpected handshake')
    }
    const feed = { upgrade: never, open: never, message: never, close: never }
    front.attach({ fetch: () => new Response('here'), feed })
    await front.drain.refuse()
    const ask = async (path: string, method = 'GET') =>
      (await fetch(`http://127.0.0.1:${front.listener.port}${path}`, { method })).status
    for (const path of ['/v1/me', '/api/me', '/in/a', '/ntfy/ops', '/mcp', '/ping/a']) {
      expect([path, await ask(path)]).toEqual([path, 503])
    }
    expect(await ask('/', 'POST')).toBe(503)
    for (const path of ['/', '/p/a', '/assets/a.js', '/healthz', '/apis']) {
      expect([path, await ask(path)]).toEqual([path, 200])
    }
  } finally {
    await front.listener.stop()
  }
})

test.each([
  ['PORT', 'port'],
  ['METRICS_PORT', 'metricsPort'],
] as const)('a taken %s is reported with the name of its setting', async (name, setting) => {
  const databaseUrl = await cloneDatabase()
  const stranger = createServer()
  const port = await listen(stranger)
  const starting = boot({ databaseUrl, [setting]: port })
  await expect(starting).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is in use. Stop the other program, or set ${name} to another port.`,
  )
  // The key of a first start is shown once, and only by a start that succeeds.
  await using sql = openSql(databaseUrl)
  expect(await sql`select from organizations`).toHaveLength(0)
  stranger.close()
})

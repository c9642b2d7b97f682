import { expect, test } from 'bun:test'
import { parseConfig } from '../../src/base/config.ts'
import { bindPort } from '../../src/server/bound-port.ts'

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

import { afterEach, expect, test } from 'bun:test'
import { ConnectionError, TidingsError } from '../../../clients/typescript/src/client.ts'
import {
  EVENT,
  startStory,
  errorOf,
  success,
  failure,
  keysOf,
  closeServers,
} from '../../support/worlds/client-story.ts'

afterEach(closeServers)

test('timeouts: an answer that never arrives, or stops within its body, is a ConnectionError', async () => {
  await Promise.all(
    (['hang', 'drip'] as const).map(async reply => {
      const { server, client } = await startStory([reply], { timeoutMs: 250, retries: 1 })
      const error = await errorOf(client.events.create(EVENT), ConnectionError)
      expect(error).toMatchObject({ name: 'ConnectionError', timedOut: true, status: undefined })
      expect(error.message).toBe(`No response from ${server.url} within 250 ms`)
      expect(error.cause).toBeDefined()
      expect(server.received).toHaveLength(2)
      expect(new Set(keysOf(server)).size).toBe(1)
    }),
  )
})

test('timeouts: Infinity waits as long as a timer can', async () => {
  const { client } = await startStory([success({ ok: 1 })], { timeoutMs: Infinity, retries: 0 })
  expect<unknown>(await client.me()).toEqual({ ok: 1 })
})

test('abort: every call removes its listeners, with any outcome', async () => {
  const listeners = new Set<unknown>()
  const { client } = await startStory(
    [failure(500), 'reset', 'drip', success({}), failure(404), failure(500)],
    { timeoutMs: 250 },
  )
  const { signal } = new AbortController()
  const { addEventListener, removeEventListener } = signal
  const listening = (type: string, listener: () => void) => {
    listeners.add(listener)
    addEventListener.call(signal, type, listener)
  }
  const leaving = (type: string, listener: () => void) => {
    listeners.delete(listener)
    removeEventListener.call(signal, type, listener)
  }
  Object.assign(signal, { addEventListener: listening, removeEventListener: leaving })
  await client.me({ signal })
  await errorOf(client.me({ signal }), TidingsError)
  await errorOf(client.me({ signal }), TidingsError)
  expect(listeners.size).toBe(0)
})

test('abort: an aborted signal sends nothing and rejects with its reason', async () => {
  const { server, client } = await startStory([success({})])
  const reason = new Error('changed my mind')
  expect(await errorOf(client.me({ signal: AbortSignal.abort(reason) }), Error)).toBe(reason)
  expect(server.received).toEqual([])
})

test('abort: a signal ends an attempt, also within its body, without a retry', async () => {
  for (const [reply, retries] of [
    ['hang', 3],
    ['drip', 3],
    ['hang', 0],
  ] as const) {
    const { server, client } = await startStory([reply], { retries })
    const controller = new AbortController()
    const call = client.events.create(EVENT, { signal: controller.signal })
    await server.until(1)
    controller.abort()
    const error = await errorOf(call, DOMException)
    expect(error.name).toBe('AbortError')
    expect(server.received).toHaveLength(1)
  }
})

test('abort: a signal ends the wait before a retry', async () => {
  const { server, client } = await startStory([failure(429, {}, { 'Retry-After': '60' })])
  const controller = new AbortController()
  const { setTimeout } = globalThis
  // Aborts once the client has begun its wait of a minute.
  const waiting = new Promise<void>(resolve => {
    const asked = <Args extends unknown[]>(
      run: (...args: Args) => void,
      ms: number,
      ...args: Args
    ) => {
      if (ms >= 60_000) resolve()
      return setTimeout(run, ms, ...args)
    }
    globalThis.setTimeout = asked as typeof setTimeout
  })
  try {
    const call = client.me({ signal: controller.signal })
    await waiting
    controller.abort('enough')
    expect(await call.catch(reason => reason)).toBe('enough')
  } finally {
    globalThis.setTimeout = setTimeout
  }
  expect(server.received).toHaveLength(1)
})

import { expect } from 'bun:test'
import { createClient } from '../../../clients/typescript/src/client.ts'
import type { Client, ClientOptions } from '../../../clients/typescript/src/client.ts'
import { startReceiver, type Fault, type Receiver } from '../servers/receiver.ts'

export const API_KEY = 'tdg_0123456789abcdefghijklmnopqrstuv012345'
export const REQUEST_ID = '7f6f9a3e-94b0-4d0b-8f0c-5a8c1d1f7a11'
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const EVENT = { channelName: 'payments', title: 'Paid' }

/** A status with a body (text as it is, anything else as JSON), or a fault. */
export type Reply = { status: number; headers?: Record<string, string>; body?: unknown } | Fault

const servers: Receiver[] = []

/** Closes the servers of a test. Each file calls it after each test. */
export async function closeServers(): Promise<void> {
  await Promise.all(servers.splice(0).map(server => server.close()))
}

/** Starts a server that gives the n-th reply to its n-th request; its clock is `aheadMs` ahead. */
export async function startStory(
  replies: Reply[],
  { aheadMs = 0, ...options }: Partial<ClientOptions> & { aheadMs?: number } = {},
): Promise<{ server: Receiver; client: Client }> {
  const toAnswer = (reply: Reply) => {
    if (typeof reply === 'string') return reply
    const { status, headers, body = '' } = reply
    const [type, text] =
      typeof body === 'string' ? ['text/html', body] : ['application/json', JSON.stringify(body)]
    const fixed = {
      // Some clients reopen a dead kept connection on their own, which would count twice.
      Connection: 'close',
      Date: new Date(Date.now() + aheadMs).toUTCString(),
      'Content-Type': type,
    }
    return { status, headers: { ...fixed, ...headers }, body: text }
  }
  const server = await startReceiver({
    reply: () => toAnswer(replies[Math.min(server.received.length, replies.length) - 1]!),
  })
  server.script('/healthz', () => {
    server.received.pop()
    return toAnswer({ status: 200, body: { status: 'ok' } })
  })
  servers.push(server)
  const client = createClient({ baseUrl: server.url, apiKey: API_KEY, retryBaseMs: 1, ...options })
  return { server, client }
}

export function success(data: unknown, status = 200, headers: Record<string, string> = {}): Reply {
  return { status, headers, body: { success: true, data, requestId: REQUEST_ID } }
}

export function failure(
  status: number,
  fields: object = {},
  headers: Record<string, string> = {},
): Reply {
  const body = { success: false, error: 'No', requestId: REQUEST_ID, ...fields }
  return { status, headers, body }
}

export async function errorOf<E extends Error>(
  work: Promise<unknown>,
  type: new (...a: never) => E,
) {
  const error = await work.then(
    () => undefined,
    reason => reason,
  )
  expect(error).toBeInstanceOf(type)
  return error as E // The line above has checked the type.
}

export function keysOf(server: Receiver): (string | undefined)[] {
  return server.received.map(({ headers }) => headers['idempotency-key'])
}

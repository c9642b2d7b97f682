import { expect } from 'bun:test'
import { createClient } from '../../../clients/typescript/src/client.ts'
import type { Client, ClientOptions } from '../../../clients/typescript/src/client.ts'
import { startScriptedServer } from '../servers/scripted-server.ts'
import type { Reply, ScriptedServer } from '../servers/scripted-server.ts'

export const API_KEY = 'tdg_0123456789abcdefghijklmnopqrstuv012345'
export const REQUEST_ID = '7f6f9a3e-94b0-4d0b-8f0c-5a8c1d1f7a11'
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const EVENT = { channelName: 'payments', title: 'Paid' }

const servers: ScriptedServer[] = []

/** Closes the servers of a test. Each file calls it after each test. */
export async function closeServers(): Promise<void> {
  await Promise.all(servers.splice(0).map(server => server.close()))
}

export async function startStory(
  replies: Reply[],
  options: Partial<ClientOptions> = {},
): Promise<{ server: ScriptedServer; client: Client }> {
  const server = await startScriptedServer(...replies)
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

export function keysOf(server: ScriptedServer): (string | undefined)[] {
  return server.received.map(({ headers }) => headers['idempotency-key'] as string | undefined)
}

import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpClient, type HttpClient } from '../support/clients/http-client.ts'

const CLIENTS = 32

/**
 * Calls `send` at a fixed rate, however long the responses take, while one of 32 connections is
 * free. `dueMs` is when the call was due.
 */
export async function sendSteadily(
  { origin, perSecond, total }: { origin: string; perSecond: number; total: number },
  send: (client: HttpClient, nth: number, dueMs: number) => Promise<void>,
): Promise<void> {
  const clients = Array.from({ length: CLIENTS }, () => createHttpClient(origin))
  const startedMs = performance.now()
  let next = 0
  await Promise.all(
    clients.map(async client => {
      while (next < total) {
        const nth = next++
        const dueMs = startedMs + (nth * 1_000) / perSecond
        const waitMs = dueMs - performance.now()
        if (waitMs > 0) await sleep(waitMs)
        await send(client, nth, dueMs)
      }
    }),
  )
  for (const client of clients) client.close()
}

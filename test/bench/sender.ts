// Shared by the senders of `bench webhooks` and `bench push`, on Bun and on Node.
import { createInterface } from 'node:readline'

/**
 * Sends prepared messages. Resolves when all are answered. A sender that records attempts has then
 * recorded them.
 */
export type Sending = () => Promise<void>

/**
 * Reads a number of messages from each line of standard input, and sends as many. Prints the rate
 * and the processor time for each message, of this process and of Postgres, as JSON.
 */
export async function runSender(
  prepare: (count: number) => Promise<Sending>,
  readPostgresMs = () => 0,
): Promise<void> {
  console.log('READY')
  for await (const line of createInterface({ input: process.stdin })) {
    const count = Number(line)
    const send = await prepare(count)
    const beforeMs = readPostgresMs()
    const before = process.cpuUsage()
    const startedMs = performance.now()
    await send()
    const tookMs = performance.now() - startedMs
    const { user, system } = process.cpuUsage(before)
    const figures = {
      perSecond: (count * 1000) / tookMs,
      processorMs: (user + system) / 1000 / count,
      postgresMs: (readPostgresMs() - beforeMs) / count,
    }
    console.log(JSON.stringify(figures))
  }
}

/** As in the full system: 8 for each of four webhooks, or 4 for each of eight devices. */
export const CONCURRENCY = 32

/** Sends `count` messages, 32 at a time. */
export async function sendAll(count: number, send: (nth: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await send(next++)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, lane))
}

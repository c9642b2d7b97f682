// What senders of `bench webhooks` and `bench push` have in common, whatever they send: Bun and Node both run it.
import { createInterface } from 'node:readline'

/** What sends so many messages, made ready before; resolves when all are answered, and written down where that is to be. */
export type Sending = () => Promise<void>

/** Answers each line of input, a number of messages, with how fast they were sent and what that cost this process. */
export async function runSender(prepare: (count: number) => Promise<Sending>): Promise<void> {
  console.log('READY')
  for await (const line of createInterface({ input: process.stdin })) {
    const count = Number(line)
    const send = await prepare(count)
    const before = process.cpuUsage()
    const startedMs = performance.now()
    await send()
    const tookMs = performance.now() - startedMs
    const { user, system } = process.cpuUsage(before)
    const figures = {
      perSecond: (count * 1000) / tookMs,
      processorMs: (user + system) / 1000 / count,
    }
    console.log(JSON.stringify(figures))
  }
}

/** As many at a time as the whole path has: eight to each of four webhooks, four to each of eight devices. */
export const AT_A_TIME = 32

/** Does so many things, 32 at a time. */
export async function sendAll(count: number, send: (nth: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await send(next++)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, lane))
}

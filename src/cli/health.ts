import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { toReason } from '../errors.ts'
import { toLocalUrl } from '../platform/listener.ts'
import { command } from './command.ts'
import { readConfig } from './environment.ts'

const TIMEOUT_MS = 5_000

interface Health {
  url: string
  /** 0 where nobody answered. */
  status: number
  /** What the server says, or why it does not. */
  answer: string
}

export const health = command({
  name: 'health',
  description:
    'Ask the server on this machine, at PORT and HOST, whether it can do its work. Exit code 1 when not.',
  examples: ['tidings health', 'PORT=8080 tidings health --json'],
  args: {},
  async run() {
    const health = await ask(`${toLocalUrl(readConfig())}/readyz`)
    return { json: health, text: health.answer, hasFailed: health.status !== 200 }
  },
})

/** Through node:http: `fetch` would ask a proxy, where the environment names one. */
function ask(url: string): Promise<Health> {
  return new Promise(resolve => {
    const fail = (error: unknown) =>
      resolve({ url, status: 0, answer: `${url} does not answer: ${toReason(error)}` })
    const asked = request(
      url,
      { agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) },
      answer => {
        text(answer).then(
          answered => resolve({ url, status: answer.statusCode ?? 0, answer: answered }),
          fail,
        )
      },
    )
    asked.on('error', fail)
    asked.end()
  })
}

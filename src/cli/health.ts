import { httpGet } from '../base/http-get.ts'
import { toReason } from '../base/errors.ts'
import { toLocalUrl } from '../base/listener.ts'
import { command } from './command.ts'
import { readSettings } from './settings.ts'

const TIMEOUT_MS = 5_000

export const health = command({
  name: 'health',
  description:
    'Check whether the server on this machine, at HOST and PORT, is ready. Exits with 1 when it is not.',
  examples: ['tidings health', 'PORT=8080 tidings health --json'],
  args: {},
  async run() {
    const url = `${toLocalUrl(readSettings().config)}/readyz`
    const { status, body: answer } = await httpGet(url, { timeoutMs: TIMEOUT_MS }).catch(
      (error: unknown) => ({ status: 0, body: `${url} does not respond: ${toReason(error)}` }),
    )
    return { json: { url, status, answer }, text: answer, hasFailed: status !== 200 }
  },
})

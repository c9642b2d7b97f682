// The whole server as a process, with its own deliveries, whose leases are short.
import { readFileSync } from 'node:fs'
import { parseConfig } from '../../src/config.ts'
import { configureLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'

/** How long an attempt may take, and the shortest lease that this allows. */
const TIMEOUT_MS = 5_000
export const SHORT_LEASE_MS = 10_100

if (import.meta.main) {
  configureLog('info', line => process.stdout.write(line))
  const config = parseConfig(process.env, path => readFileSync(path, 'utf8'))
  const server = await startServer(config, {
    adjust: kind => ({ ...kind, timeoutMs: TIMEOUT_MS, leaseMs: SHORT_LEASE_MS }),
  })
  process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)))
  process.stderr.write(`The server with short leases is running: ${server.url}\n`)
}

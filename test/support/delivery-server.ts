// The whole server as a process, whose one kind of delivery posts to the inbox at INBOX_URL, with short leases.
import { readFileSync } from 'node:fs'
import { parseConfig } from '../../src/config.ts'
import { configureLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'
import { createTestKind } from './delivery-kind.ts'

/** The shortest lease that the time-out allows. */
export const LEASE_MS = 5_600
const TIMEOUT_MS = 500
const RETRY_MS = 400
/** The least time between an attempt that was given up and the next one. */
export const AGAIN_MS = TIMEOUT_MS + 0.8 * RETRY_MS
// In the runs nothing fails for ever, and each attempt may meet a fault of its own.
const SCHEDULE = [0, ...Array.from({ length: 40 }, () => RETRY_MS)]

if (import.meta.main) {
  configureLog('info', line => process.stdout.write(line))
  const config = parseConfig(process.env, path => readFileSync(path, 'utf8'))
  const kind = createTestKind({
    url: process.env['INBOX_URL'] ?? '',
    schedule: SCHEDULE,
    timeoutMs: TIMEOUT_MS,
    leaseMs: LEASE_MS,
  })
  const server = await startServer(config, { kinds: [kind] })
  process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)))
  process.stderr.write(`The server with a test's deliveries is running: ${server.url}\n`)
}

// The whole server as a process, with short leases of its deliveries.
import { readFileSync } from 'node:fs'
import { parseConfig } from '../../../src/base/config.ts'
import { configureLog } from '../../../src/base/log.ts'
import { startServer } from '../../../src/server/server.ts'
import { startWorkers, WORKER_VARIABLE } from '../../../src/server/workers.ts'

/** The timeout of an attempt, and the shortest lease that it allows. */
const SHORT_TIMEOUT_MS = 5_000
const SHORT_LEASE_MS = 10_100

configureLog('info', process.stdout)
const config = parseConfig(process.env, path => readFileSync(path, 'utf8'))
const isWorker = process.env[WORKER_VARIABLE] !== undefined
const server =
  config.workers > 1 && !isWorker
    ? await startWorkers(config)
    : await startServer(config, {
        isWorker,
        adjust: kind => ({ ...kind, timeoutMs: SHORT_TIMEOUT_MS, leaseMs: SHORT_LEASE_MS }),
      })
const stop = () => void server.stop().then(isGood => process.exit(isGood === false ? 1 : 0))
process.once('SIGTERM', stop)
if (isWorker) process.stdin.once('end', stop).resume()
else process.stderr.write(`The server with short leases is running: ${server.url}\n`)

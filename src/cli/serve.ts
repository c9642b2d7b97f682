import { configureLog } from '../log.ts'
import type { BootstrapSecrets } from '../server/bootstrap.ts'
import { startServer } from '../server.ts'
import { startWorkers, WORKER_VARIABLE } from '../workers.ts'
import { VERSION } from '../version.ts'
import { command } from './command.ts'
import { readConfig, migrateDatabase } from './environment.ts'
import { MIGRATIONS } from '../db/migrate.ts'

/** Signals that come within this time are one. */
const SAME_SIGNAL_MS = 500

export const serve = command({
  name: 'serve',
  description: 'Run the server. It starts its own Postgres in DATA_DIR unless DATABASE_URL is set.',
  examples: [
    'tidings serve',
    'tidings serve --workers 4',
    'PORT=8080 BASE_URL=https://tidings.example.com tidings serve',
    'DATABASE_URL=postgres://tidings:secret@db/tidings tidings serve',
  ],
  args: {
    workers: {
      type: 'string',
      description: 'How many processes share the port; by default WORKERS, or 1. On Linux',
    },
  },
  async run({ workers }) {
    const config = readConfig(workers === undefined ? {} : { WORKERS: workers })
    configureLog(config.logLevel, line => process.stdout.write(line))
    // A signal during the start stops the server as soon as it runs.
    const stopping = waitForStopSignal()
    const early = new AbortController()
    void stopping.then(() => early.abort())
    const isWorker = process.env[WORKER_VARIABLE] !== undefined
    const start = () =>
      config.workers > 1 && !isWorker
        ? startWorkers(config, early.signal)
        : startServer(config, { isWorker, signal: early.signal })
    const server = await start().catch((error: unknown) => {
      if (!early.signal.aborted) throw error
      return process.exit(0)
    })
    if (!isWorker) process.stderr.write(toBanner(server))
    await stopping
    const isGood = await server.stop()
    process.exit(isGood === false ? 1 : 0)
  },
})

export const migrate = command({
  name: 'migrate',
  description: "Bring the database to this program's schema. `serve` does the same at its start.",
  examples: ['tidings migrate', 'DATABASE_URL=postgres://… tidings migrate --json'],
  args: {},
  async run() {
    const applied = await migrateDatabase()
    const migrations = MIGRATIONS.map(({ name }) => ({ name, isNew: applied.includes(name) }))
    return {
      json: migrations,
      text: migrations.map(({ name, isNew }) => `${isNew ? 'new' : 'ok '}  ${name}`).join('\n'),
    }
  },
})

/** The text on standard error at the start; the log goes to standard output. */
function toBanner({ url, firstKey, setupToken }: BootstrapSecrets & { url: string }): string {
  const parts = [
    `\nTidings ${VERSION} is running: ${url}   (documentation: ${url}/docs)\n`,
    firstKey !== undefined &&
      `Your first API key is shown here once. Send your first event:

  curl ${url}/v1/events \\
    -H 'Authorization: Bearer ${firstKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"channelName": "payments", "title": "New payment", "icon": "💰"}'
`,
    setupToken !== undefined &&
      `Nobody owns this installation yet. Claim it within 30 minutes (a restart prints a new link):

  ${url}/setup#${setupToken}
`,
  ]
  return `${parts.filter(part => part !== false).join('\n')}\n`
}

/** Resolves at the first signal to stop; a second one ends the process at once. */
function waitForStopSignal(): Promise<void> {
  let firstMs: number | undefined
  return new Promise(resolve => {
    const stop = () => {
      // A parent process may forward a signal that the terminal has sent to this one, too.
      if (firstMs !== undefined && performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(1)
      firstMs ??= performance.now()
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    // The parent of a worker holds the other end until it ends.
    if (process.env[WORKER_VARIABLE] !== undefined) process.stdin.once('end', stop).resume()
  })
}

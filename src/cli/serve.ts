import { configureLog } from '../log.ts'
import type { BootstrapSecrets } from '../server/bootstrap.ts'
import { startServer } from '../server.ts'
import { startWorkers, WORKER_VARIABLE } from '../workers.ts'
import { VERSION } from '../version.ts'
import { command } from './command.ts'
import { DATA_DIR, explainError, findInstallation, migrateDatabase } from './environment.ts'
import { MIGRATIONS } from '../db/migrate.ts'

/** Signals within this time count as one. */
const SAME_SIGNAL_MS = 500

export const serve = command({
  name: 'serve',
  description: 'Start the server. It runs its own Postgres in DATA_DIR unless DATABASE_URL is set.',
  examples: [
    'tidings serve',
    'tidings serve --workers 4',
    'PORT=8080 BASE_URL=https://tidings.example.com tidings serve',
    'DATABASE_URL=postgres://tidings:secret@db/tidings tidings serve',
  ],
  args: {
    ...DATA_DIR,
    workers: {
      type: 'string',
      description: 'Number of processes that share the port (default: WORKERS, or 1); Linux only',
    },
  },
  async run({ workers, ...place }) {
    const isWorker = process.env[WORKER_VARIABLE] !== undefined
    const { config } = findInstallation({ ...place, json: isWorker }, { WORKERS: workers })
    configureLog(config.logLevel, line => process.stdout.write(line))
    // A signal during the start stops the server as soon as it has started.
    const stopping = waitForStopSignal()
    const starting = new AbortController()
    void stopping.then(() => starting.abort())
    const start = () =>
      config.workers > 1 && !isWorker
        ? startWorkers(config, starting.signal)
        : startServer(config, { isWorker, signal: starting.signal })
    const server = await start().catch((error: unknown) => {
      if (!starting.signal.aborted) throw explainError(error)
      return process.exit(0)
    })
    if (!isWorker) process.stderr.write(toBanner(server))
    await stopping
    const isClean = await server.stop()
    process.exit(isClean === false ? 1 : 0)
  },
})

export const migrate = command({
  name: 'migrate',
  description: 'Apply pending migrations to the database. `serve` does the same when it starts.',
  examples: ['tidings migrate', 'DATABASE_URL=postgres://… tidings migrate --json'],
  args: DATA_DIR,
  async run(args) {
    const applied = await migrateDatabase(args)
    const migrations = MIGRATIONS.map(({ name }) => ({ name, isNew: applied.includes(name) }))
    return {
      json: migrations,
      text: migrations.map(({ name, isNew }) => `${isNew ? 'new' : 'ok '}  ${name}`).join('\n'),
    }
  },
})

/** Returns the text that a start prints on standard error. The log goes to standard output. */
function toBanner({ url, firstKey, setupToken }: BootstrapSecrets & { url: string }): string {
  const parts = [
    `\nTidings ${VERSION} is running: ${url}   (documentation: ${url}/docs)\n`,
    firstKey !== undefined &&
      `Your first API key is shown only once. Send your first event with it:

  curl ${url}/v1/events \\
    -H 'Authorization: Bearer ${firstKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"channelName": "payments", "title": "New payment", "icon": "💰"}'
`,
    setupToken !== undefined &&
      `This installation has no owner yet. Create the owner within 30 minutes (a restart prints a new link):

  ${url}/setup#${setupToken}
`,
  ]
  return `${parts.filter(part => part !== false).join('\n')}\n`
}

/** Resolves at the first signal to stop. A second signal ends the process at once. */
function waitForStopSignal(): Promise<void> {
  let firstMs: number | undefined
  return new Promise(resolve => {
    const stop = () => {
      // A parent process can forward a signal that the terminal also sent to this process.
      if (firstMs !== undefined && performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(1)
      firstMs ??= performance.now()
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    // The standard input of a worker ends when its parent ends.
    if (process.env[WORKER_VARIABLE] !== undefined) process.stdin.once('end', stop).resume()
  })
}

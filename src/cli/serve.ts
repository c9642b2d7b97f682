import { configureLog } from '../base/log.ts'
import type { BootstrapSecrets } from '../server/bootstrap.ts'
import { IncompleteStop } from '../server/cleanup-stack.ts'
import { sendHeartbeats, startWorkers, WORKER_VARIABLE } from '../server/workers.ts'
import { VERSION } from '../base/version.ts'
import { command } from './command.ts'
import { DATA_DIR, explainError, findInstallation, withInstallation } from './environment.ts'
import { waitForStopSignal } from './stop-signal.ts'
import { feedWatchdog } from './watchdog.ts'
import { checkCitus, distribute } from '../database/distribute.ts'
import { FUNCTIONS_NAME, migrate as migrateDatabase } from '../database/migrate.ts'
import { MIGRATIONS } from '../database/sql-files.ts'

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
    configureLog(config.logLevel, process.stdout, config.logFormat)
    if (config.timeZone !== undefined) process.env['TZ'] = config.timeZone
    if (isWorker) sendHeartbeats()
    else feedWatchdog()
    // A signal during the start stops the server as soon as it has started.
    const stopping = waitForStopSignal()
    const starting = new AbortController()
    void stopping.then(() => starting.abort())
    const isTerminal = process.stderr.isTTY
    // Other commands show no page, and work before the pages are built.
    const { startServer } = await import('../server/server.ts')
    const start = () =>
      config.workers > 1 && !isWorker
        ? startWorkers(config, { signal: starting.signal, isTerminal })
        : startServer(config, { isWorker, signal: starting.signal, isTerminal })
    const server = await start().catch((error: unknown) => {
      if (!starting.signal.aborted) throw explainError(error)
      return process.exit(error instanceof IncompleteStop ? 1 : 0)
    })
    if (!isWorker) process.stderr.write(toBanner(server))
    await stopping
    process.exit((await server.stop()) ? 0 : 1)
  },
})

export const migrate = command({
  name: 'migrate',
  description: 'Apply pending migrations to the database. `serve` does the same when it starts.',
  examples: [
    'tidings migrate',
    'DATABASE_URL=postgres://… tidings migrate --json',
    'DATABASE_URL=postgres://… tidings migrate --distributed',
  ],
  args: {
    ...DATA_DIR,
    distributed: {
      type: 'boolean',
      description: 'Spread the logs of projects over the worker nodes of Citus, for good',
    },
  },
  async run({ distributed: isDistributed, ...place }) {
    const applied = await withInstallation(
      place,
      async ({ url }) => {
        if (isDistributed) await checkCitus(url)
        const names = await migrateDatabase(url)
        if (isDistributed) await distribute(url)
        return names
      },
      { allowsUpgrade: true },
    )
    const names = [...MIGRATIONS.map(({ name }) => name), FUNCTIONS_NAME]
    const migrations = names.map(name => ({ name, isNew: applied.includes(name) }))
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
      `This installation has no owner yet. Create your account within 30 minutes (a restart prints a new link).
${firstKey === undefined ? 'The next page gives you an API key and the command that sends your first event.\n' : ''}
  ${url}/setup#${setupToken}
`,
  ]
  return `${parts.filter(part => part !== false).join('\n')}\n`
}

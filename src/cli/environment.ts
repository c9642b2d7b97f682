import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../base/config.ts'
import { locateDatabase, openDatabase, type Database } from '../database/embedded/database.ts'
import { hasCluster } from '../database/embedded/cluster.ts'
import { findSchemaProblem, listMigrations } from '../database/migrate.ts'
import { isLockHeld } from '../database/locks.ts'
import { explainDatabaseError } from '../database/explanation.ts'
import { connect, type Sql } from '../database/sql.ts'
import { describeHosts, parseUrl } from '../base/database-url.ts'
import { toReason } from '../base/errors.ts'
import { untilAborted } from '../base/functions.ts'
import { configureLog, logger } from '../base/log.ts'
import { findOwner } from '../base/private-files.ts'
import { explainSystemError } from '../base/system-error.ts'
import type { SecretSource } from '../database/secrets/open-secrets.ts'
import { readSettings, type Settings } from './settings.ts'
import { abortOnStopSignal } from './stop-signal.ts'

/** Longer than the pause between two migrations of a server that starts. */
const MIGRATION_MS = 500

/** The option of all commands that work on an installation. */
export const DATA_DIR = {
  'data-dir': {
    type: 'string',
    description: 'The folder of the installation. Default: DATA_DIR, or the settings file',
  },
} as const

/** The parsed options of a command that works on an installation. */
export interface Place {
  'data-dir'?: string | undefined
  json?: unknown
}

/** The configured installation. Its server can be running. */
export interface Installation {
  url: string
  config: Config
  /** The place of its APP_SECRET. */
  source: SecretSource
}

interface OpenOptions {
  allowsUpgrade?: boolean
  /** True if the command may create an installation in a place that is named. */
  mayCreate?: boolean
  /** True if the command itself ends its work when a signal stops it. */
  handlesSignals?: boolean
}

/** Reads the settings of a command, and says on standard error which installation it works on. */
export function findInstallation({ 'data-dir': dataDir, json }: Place, more = {}): Settings {
  const settings = readSettings({ ...more, DATA_DIR: dataDir })
  // With --json, standard error has at most one JSON value.
  if (!json) {
    const lines = [`Using ${describeInstallation(settings)}.`, ...settings.warnings]
    process.stderr.write(lines.map(line => `${line}\n`).join(''))
  }
  return settings
}

/** Throws unless the settings name an existing folder, or the URL of a database. */
export function ensureInstalled(settings: Settings): void {
  const { kind, dataDir } = locateDatabase(settings.config)
  if (kind === 'external' || hasCluster(dataDir)) return
  throw new Error(
    `There is no installation in ${dataDir}${settings.source ? '' : ', and nothing names another one'}. ` +
      'Name the installation with --data-dir, DATA_DIR or DATABASE_URL, or its settings file with TIDINGS_CONFIG. ' +
      '`tidings serve` creates a new one.',
  )
}

/** Throws if root would create an installation that the owner of its folder cannot use. */
function refuseForeignFolder({ config }: Settings): void {
  const { kind, dataDir } = locateDatabase(config)
  if (kind === 'external' || hasCluster(dataDir)) return
  const owner = findOwner(dataDir)
  if (!owner) return
  throw new Error(
    `${dataDir} belongs to uid ${owner.uid}, who could not use what root creates there. ` +
      `Nothing was changed. Run the command as that user: sudo -u '#${owner.uid}' tidings …`,
  )
}

/**
 * Runs `work` on the configured installation. Accepts any schema and any version of Postgres.
 * Throws when there is no installation.
 */
export async function withInstallation<Result>(
  place: Place,
  work: (installation: Installation) => Promise<Result>,
  { allowsUpgrade = false, mayCreate = false, handlesSignals = false }: OpenOptions = {},
): Promise<Result> {
  const settings = findInstallation(place)
  const { config } = settings
  // Log to standard error, because standard output is for the result.
  const level = config.logLevel === 'debug' ? 'debug' : 'warning'
  configureLog(level, process.stderr, config.logFormat)
  if (!mayCreate || settings.source === undefined) ensureInstalled(settings)
  else refuseForeignFolder(settings)
  return withOpenDatabase(
    config,
    async database => {
      const source = { ...config, dataDir: database.dataDir }
      return work({ url: database.sessionUrl, config, source }).catch((error: unknown) => {
        throw explainError(error)
      })
    },
    { allowsUpgrade, handlesSignals },
  )
}

/**
 * Opens the configured database, and runs `work` on it. A signal that stops the command closes the
 * database before the process ends, because a Postgres that it started would run on.
 */
export async function withOpenDatabase<Result>(
  config: Config,
  work: (database: Database) => Promise<Result>,
  {
    allowsUpgrade = false,
    handlesSignals = false,
  }: Pick<OpenOptions, 'allowsUpgrade' | 'handlesSignals'> = {},
): Promise<Result> {
  const { signal } = handlesSignals
    ? new AbortController()
    : abortOnStopSignal(name => `Stopped by ${name}.`)
  const database = await openDatabase(config, { allowsUpgrade, signal })
  try {
    signal.throwIfAborted()
    return await untilAborted(signal, work(database))
  } finally {
    await database.close()
  }
}

/** Replaces an error of the database or the system by one that says what to do. Keeps others. */
export function explainError(error: unknown): unknown {
  const text = explainDatabaseError(error) ?? explainSystemError(error)
  if (text === undefined) return error
  logger('cli').debug('Failed: {reason}', { reason: toReason(error) })
  return new Error(text, { cause: error })
}

/** Runs `work` on the configured database. Throws unless its schema is that of this program. */
export function withDatabase<Result>(
  place: Place,
  work: (sql: Sql, installation: Installation) => Promise<Result>,
  options?: Pick<OpenOptions, 'handlesSignals'>,
): Promise<Result> {
  const run = async (installation: Installation) => {
    const sql = connect(installation.url, { name: 'cli', max: 2 })
    try {
      await checkSchema(sql)
      return await work(sql, installation)
    } finally {
      await sql.end({ timeout: 5 })
    }
  }
  return withInstallation(place, run, options)
}

/**
 * Throws unless the schema is that of this program. Only `serve`, `migrate` and `restore` create or
 * upgrade one, which is waited for.
 */
async function checkSchema(sql: Sql): Promise<void> {
  let applied: number | undefined
  for (let before: typeof applied; ; before = applied) {
    if ((await findSchemaProblem(sql)) === undefined) return
    applied = (await listMigrations(sql)).filter(({ isApplied }) => isApplied).length
    if (applied === before && !(await isLockHeld(sql, 'migrations'))) break
    await sleep(MIGRATION_MS)
  }
  throw new Error(
    applied > 0
      ? 'The schema of the database is older than this program. Run `tidings migrate`, or restart the server.'
      : 'The database has no installation of Tidings: it is empty. Check DATABASE_URL, or start the server, which creates one.',
  )
}

function describeInstallation({ config, source = 'the default' }: Settings): string {
  const { kind, dataDir } = locateDatabase(config)
  if (kind === 'embedded' || !config.databaseUrl)
    return `the installation in ${dataDir} (${source})`
  const { database, user = '' } = parseUrl(config.databaseUrl)
  return `the database ${database ?? user} at ${describeHosts(config.databaseUrl)} (${source})`
}

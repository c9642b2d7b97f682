import { readFileSync } from 'node:fs'
import { parseConfig, type Config } from '../config.ts'
import { openDatabase } from '../embedded/database.ts'
import { listMigrations, migrate } from '../db/migrate.ts'
import { connect, isUnavailable, sqlState, type Sql } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { configureLog } from '../log.ts'
import type { SecretSource } from '../secrets/open-secrets.ts'

/**
 * Reads the configuration from the environment. `given` overrides it. Throws a `ConfigError` that
 * lists every problem.
 */
export function readConfig(given: Readonly<Record<string, string | undefined>> = {}): Config {
  return parseConfig({ ...process.env, ...given }, path => readFileSync(path, 'utf8'))
}

/** The configured installation. Its server can be running. */
export interface Installation {
  url: string
  config: Config
  /** The place of its APP_SECRET. */
  source: SecretSource
}

/** Runs `work` on the configured installation. Accepts any schema and any version of Postgres. */
export async function withInstallation<Result>(
  work: (installation: Installation) => Promise<Result>,
  options?: { allowsUpgrade: boolean },
): Promise<Result> {
  const config = readConfig()
  // Log to standard error, because standard output is for the result.
  configureLog('warning', line => process.stderr.write(line))
  const database = await openDatabase(config, options)
  try {
    const source = { ...config, dataDir: database.dataDir }
    return await work({ url: database.url, config, source })
  } catch (error) {
    throw explainUnreachable(error)
  } finally {
    await database.close()
  }
}

/** Replaces the error of a failed connection by one that says what to do. Returns others as is. */
export function explainUnreachable(error: unknown): unknown {
  if (sqlState(error) !== undefined || !isUnavailable(error)) return error
  return new Error(
    `The database cannot be reached (${toReason(error)}). Check DATABASE_URL, and that Postgres is running.`,
  )
}

/** Runs `work` on the configured database. Throws when its schema is older than this program. */
export function withDatabase<Result>(
  work: (sql: Sql, source: SecretSource) => Promise<Result>,
): Promise<Result> {
  return withInstallation(async ({ url, source }) => {
    const sql = connect(url, { name: 'cli', max: 2 })
    try {
      await ensureSchema(sql, url)
      return await work(sql, source)
    } finally {
      await sql.end({ timeout: 5 })
    }
  })
}

/** Upgrades the schema and the Postgres of the installation. Returns the applied migrations. */
export function migrateDatabase(): Promise<string[]> {
  return withInstallation(({ url }) => migrate(url), { allowsUpgrade: true })
}

/** Creates the schema in an empty database. Only `migrate` and `serve` upgrade an older schema. */
async function ensureSchema(sql: Sql, url: string): Promise<void> {
  const migrations = await listMigrations(sql)
  if (migrations.every(({ isApplied }) => isApplied)) return
  if (migrations.some(({ isApplied }) => isApplied)) {
    throw new Error(
      'The schema of the database is older than this program. Run `tidings migrate`, or restart the server.',
    )
  }
  await migrate(url)
}

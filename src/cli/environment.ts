import { readFileSync } from 'node:fs'
import { parseConfig, type Config } from '../config.ts'
import { openDatabase } from '../embedded/database.ts'
import { listMigrations, migrate } from '../db/migrate.ts'
import { connect, type Sql } from '../db/sql.ts'
import { configureLog } from '../log.ts'
import type { SecretSource } from '../secrets/open-secrets.ts'

/** Reads the configuration of this process, with `given` over it; throws a `ConfigError` with every problem. */
export function readConfig(given: Readonly<Record<string, string | undefined>> = {}): Config {
  return parseConfig({ ...process.env, ...given }, path => readFileSync(path, 'utf8'))
}

/** The database of the configuration, that of a running server included. */
export interface Installation {
  url: string
  config: Config
  /** Its APP_SECRET. */
  source: SecretSource
}

/** Runs `work` on the configured installation, whatever its schema and its version of Postgres. */
export async function withInstallation<Result>(
  work: (installation: Installation) => Promise<Result>,
  options?: { allowsUpgrade: boolean },
): Promise<Result> {
  const config = readConfig()
  // Standard output is for the result.
  configureLog('warning', line => process.stderr.write(line))
  const database = await openDatabase(config, options)
  try {
    const source = { ...config, dataDir: database.dataDir }
    return await work({ url: database.url, config, source })
  } finally {
    await database.close()
  }
}

/** Runs `work` on the configured database. */
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

/** Upgrades the configured database to this program's schema and Postgres; returns the migrations applied now. */
export function migrateDatabase(): Promise<string[]> {
  return withInstallation(({ url }) => migrate(url), { allowsUpgrade: true })
}

/** Makes the schema of an empty database; an older one is left to `migrate` and `serve`. */
async function ensureSchema(sql: Sql, url: string): Promise<void> {
  const migrations = await listMigrations(sql)
  if (migrations.every(({ isApplied }) => isApplied)) return
  if (migrations.some(({ isApplied }) => isApplied)) {
    throw new Error(
      'The database has an older schema: run `tidings migrate`, or restart the server.',
    )
  }
  await migrate(url)
}

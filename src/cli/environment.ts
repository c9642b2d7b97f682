import { readFileSync } from 'node:fs'
import { parseConfig, type Config } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import { listMigrations, migrate } from '../db/migrate.ts'
import { connect, type Sql } from '../db/sql.ts'
import { configureLog } from '../log.ts'
import type { SecretSource } from '../secrets/open-secrets.ts'

/** The configuration of this process; throws a `ConfigError` with all that is wrong. */
export function readConfig(): Config {
  return parseConfig(process.env, path => readFileSync(path, 'utf8'))
}

/** Runs `work` on the database of the configuration, that of a running server included, and says where its APP_SECRET is. */
export async function withDatabase<Result>(
  work: (sql: Sql, source: SecretSource) => Promise<Result>,
): Promise<Result> {
  const config = readConfig()
  // Standard output is for the result.
  configureLog('warning', line => process.stderr.write(line))
  const database = await openDatabase(config)
  try {
    const sql = connect(database.url, { name: 'cli', max: 2 })
    try {
      await ensureSchema(sql, database.url)
      return await work(sql, { ...config, dataDir: database.dataDir })
    } finally {
      await sql.end({ timeout: 5 })
    }
  } finally {
    await database.close()
  }
}

/** Brings the database of the configuration to this program's schema; returns what was applied now. */
export async function migrateDatabase(): Promise<string[]> {
  const database = await openDatabase(readConfig())
  try {
    return await migrate(database.url)
  } finally {
    await database.close()
  }
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

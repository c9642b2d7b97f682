import { readFileSync } from 'node:fs'
import { parseConfig, type Config } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { connect, type Sql } from '../db/sql.ts'
import { configureLog } from '../log.ts'

/** The configuration of this process; throws a `ConfigError` with all that is wrong. */
export function readConfig(): Config {
  return parseConfig(process.env, path => readFileSync(path, 'utf8'))
}

/** Runs `work` on the database of the configuration, that of a running server included, at the current schema. */
export async function withDatabase<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
  const config = readConfig()
  // Standard output is for the result.
  configureLog('warning', line => process.stderr.write(line))
  const database = await openDatabase(config)
  try {
    await migrate(database.url)
    const sql = connect(database.url, { name: 'cli', max: 2 })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 5 })
    }
  } finally {
    await database.close()
  }
}

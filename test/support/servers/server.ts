import { parseConfig, type Config } from '../../../src/base/config.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { startServer, type Server, type ServerOptions } from '../../../src/server/server.ts'
import { forFile, forProcess } from '../for-file.ts'
import { SCRATCH } from '../scratch.ts'
import { APP_SECRET } from '../secret.ts'
import { toPooledUrl } from './pooler.ts'
import { cloneDatabase } from './postgres.ts'
import { openSql } from '../sql.ts'

/** With this variable, servers reach their database through PgBouncer. */
export const POOLER = 'TIDINGS_TEST_POOLER'

/** A real server on its own database. */
export interface Booted extends AsyncDisposable {
  url: string
  databaseUrl: string
  server: Server
  /** A separate pool for reading and ageing rows. */
  sql: Sql
}

/** Starts a server as in production, on a free port and a clone of the template database. */
export async function boot(
  overrides: Partial<Config> = {},
  options: ServerOptions = {},
): Promise<Booted> {
  const databaseUrl = overrides.databaseUrl ?? (await cloneDatabase())
  const isPooled = process.env[POOLER] !== undefined && overrides.databaseUrl === undefined
  const server = await startServer(
    {
      ...parseConfig({ PORT: '0' }, String),
      appSecret: APP_SECRET,
      dataDir: SCRATCH,
      ...overrides,
      ...(isPooled
        ? { databaseUrl: await toPooledUrl(databaseUrl), databaseDirectUrl: databaseUrl }
        : { databaseUrl }),
    },
    options,
  )
  const sql = openSql(databaseUrl, { max: 2 })
  return {
    url: `http://127.0.0.1:${server.port}`,
    databaseUrl,
    server,
    sql,
    async [Symbol.asyncDispose]() {
      await server.stop()
      await sql.end({ timeout: 1 })
    },
  }
}

/** Starts a server for the tests of a file. */
export function withServer(...given: Parameters<typeof boot>): Booted {
  return forFile(() => boot(...given))
}

/** The server of all files of a process that only need organizations of their own. */
export function withSharedServer(): Booted {
  return forProcess(boot)
}

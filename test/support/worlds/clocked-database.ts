import { migrate } from '../../../src/database/migrate.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { copyDatabase, createEmptyDatabase } from '../servers/postgres.ts'
import { openSql } from '../sql.ts'

/** A database whose clock the test sets. */
export interface ClockedDatabase extends AsyncDisposable {
  url: string
  sql: Sql
  /** Moves the clock by an interval like `-1 hour`. */
  moveClock(interval: string): Promise<void>
}

/** Creates a database whose time functions add a stored interval to those of Postgres. */
export async function prepareClockedDatabases(): Promise<() => Promise<ClockedDatabase>> {
  const url = await createEmptyDatabase()
  const admin = openSql(url)
  await admin.unsafe(`
    create schema test_clock;
    create table test_clock.ahead (by interval not null);
    insert into test_clock.ahead values ('0');
    create function test_clock.now() returns timestamptz language sql stable
      as $$ select pg_catalog.now() + by from test_clock.ahead $$;
    create function test_clock.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() + by from test_clock.ahead $$;
  `)
  await admin.end()
  // Defaults and some functions keep the time functions that the migration finds.
  await migrate(withClock(url))
  return async () => open(withClock(await copyDatabase(url)))
}

function withClock(url: string): string {
  return `${url}&options=-c%20search_path=public,test_clock,pg_catalog`
}

function open(url: string): ClockedDatabase {
  const sql = openSql(url, { max: 4 })
  return {
    url,
    sql,
    async moveClock(interval) {
      await sql`update test_clock.ahead set by = by + ${interval}::interval`
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
    },
  }
}

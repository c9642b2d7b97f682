import { connect, type Sql } from '../../src/db/sql.ts'
import { createEmptyDatabase } from './postgres.ts'

/**
 * An empty database whose clock the test sets: for every statement, function and default, on every
 * server.
 */
export interface ClockedDatabase extends AsyncDisposable {
  url: string
  sql: Sql
  /** Moves the clock by an interval like `-1 hour`. */
  moveClock(interval: string): Promise<void>
}

/**
 * Replaces Postgres' time functions by ones that add a stored interval. Timeouts and sleeps use
 * Postgres' own clock, as they do when a machine's clock is set.
 */
export async function createClockedDatabase(): Promise<ClockedDatabase> {
  const url = await createEmptyDatabase()
  const admin = connect(url, { name: 'test', max: 1 })
  const name = new URL(url).pathname.slice(1)
  await admin.unsafe(`
    create schema test_clock;
    create table test_clock.ahead (by interval not null);
    insert into test_clock.ahead values ('0');
    create function test_clock.now() returns timestamptz language sql stable
      as $$ select pg_catalog.now() + by from test_clock.ahead $$;
    create function test_clock.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() + by from test_clock.ahead $$;
    alter database ${name} set search_path = public, test_clock, pg_catalog;
  `)
  await admin.end()
  const sql = connect(url, { name: 'test', max: 4 })
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

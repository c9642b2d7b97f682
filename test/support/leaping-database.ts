import { connect, type Sql } from '../../src/db/sql.ts'
import { createEmptyDatabase } from './postgres.ts'

/**
 * An empty database whose clock the test sets: for every statement, function and default, on every
 * server.
 */
export interface LeapingDatabase extends AsyncDisposable {
  url: string
  sql: Sql
  /** Moves the clock by an interval like `-1 hour`. */
  leap(interval: string): Promise<void>
}

/**
 * Replaces Postgres' time functions by ones that add a stored interval. Timeouts and sleeps use
 * Postgres' own clock, as they do when a machine's clock is set.
 */
export async function createLeapingDatabase(): Promise<LeapingDatabase> {
  const url = await createEmptyDatabase()
  const admin = connect(url, { name: 'test', max: 1 })
  const name = new URL(url).pathname.slice(1)
  await admin.unsafe(`
    create schema leaping;
    create table leaping.ahead (by interval not null);
    insert into leaping.ahead values ('0');
    create function leaping.now() returns timestamptz language sql stable
      as $$ select pg_catalog.now() + by from leaping.ahead $$;
    create function leaping.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() + by from leaping.ahead $$;
    alter database ${name} set search_path = public, leaping, pg_catalog;
  `)
  await admin.end()
  const sql = connect(url, { name: 'test', max: 4 })
  return {
    url,
    sql,
    async leap(interval) {
      await sql`update leaping.ahead set by = by + ${interval}::interval`
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
    },
  }
}

import { withTimeout } from '../base/functions.ts'
import { quoteIdentifier } from './copy.ts'
import { describeUnavailable, type Queryable, type Sql } from './sql.ts'

const OLDEST_POSTGRES = 150_000
const ENCODING = 'UTF8'
/** A shorter limit would end transactions of normal work. Backups and migrations take longer. */
const SHORTEST_TRANSACTION_MS = 60_000

interface Facts {
  number: number
  version: string
  fsync: string
  encoding: string
  /** The end of a `create database` whose letters have cases beyond ASCII, too. */
  locale: string
  database: string
  user: string
  role: string
  isolation: string
  transaction_ms: number | null
}

/** Returns why Tidings cannot work with a database, and what to do. Undefined if it can. */
export async function findDatabaseProblem(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<[Facts]>`
    select
      current_setting('server_version_num')::int as number,
      current_setting('server_version') as version,
      current_setting('fsync') as fsync,
      getdatabaseencoding() as encoding,
      case when current_setting('server_version_num')::int >= 170000
        then $$locale_provider builtin builtin_locale 'C.UTF-8' locale 'C'$$
        else format('locale %L', coalesce((
          select collctype from pg_collation
          where collprovider = 'c' and pg_encoding_to_char(collencoding) = 'UTF8'
          order by starts_with(collname, 'C.') desc, collname
          limit 1
        ), 'C'))
      end as locale,
      current_database() as database,
      current_user as user,
      current_setting('session_replication_role') as role,
      current_setting('transaction_isolation') as isolation,
      (select setting::float8 from pg_settings where name = 'transaction_timeout') as transaction_ms
  `
  if (row.number < OLDEST_POSTGRES)
    return `Tidings requires PostgreSQL 15 or newer. This server runs ${row.version}.`
  if (row.fsync === 'off')
    return 'This PostgreSQL runs with fsync = off, which loses events in a crash. Set fsync = on.'
  const database = quoteIdentifier(row.database)
  const user = quoteIdentifier(row.user)
  if (row.encoding !== ENCODING) {
    const other = quoteIdentifier(`${row.database}_utf8`)
    return `The database ${database} has the encoding ${row.encoding}. Tidings requires ${ENCODING}. Run as a superuser: create database ${other} owner ${user} encoding '${ENCODING}' ${row.locale} template template0; Then write this name into DATABASE_URL.`
  }
  const toReset = (name: string) =>
    `Run as a superuser: alter role ${user} reset ${name}; alter database ${database} reset ${name};`
  if (row.role !== 'origin')
    return `Sessions of ${user} have session_replication_role = ${row.role}, which turns constraints off. ${toReset('session_replication_role')}`
  // Sessions begin with the right one. Behind a pooler, it is that of the role.
  if (row.isolation !== 'read committed')
    return `Transactions of ${user} are ${row.isolation}, and not read committed. ${toReset('default_transaction_isolation')}`
  const { transaction_ms: limitMs } = row
  if (limitMs !== null && limitMs > 0 && limitMs < SHORTEST_TRANSACTION_MS)
    return `Transactions of ${user} end after ${limitMs} ms (transaction_timeout). ${toReset('transaction_timeout')}`
  return undefined
}

/**
 * Returns why indexes of texts may miss rows, and what to do: the C library sorts texts in another
 * way than when they were made, as after an upgrade of the system or of an image of PostgreSQL.
 */
export async function findCollationProblem(sql: Queryable): Promise<string | undefined> {
  const [row] = await sql<[{ name: string; made_by: string | null; present: string | null }]>`
    select
      datname as name, datcollversion as made_by, pg_database_collation_actual_version(oid) as present
    from pg_database
    where datname = current_database()
  `
  const { name, made_by: madeBy, present } = row
  if (madeBy === null || present === null || madeBy === present) return undefined
  const database = quoteIdentifier(name)
  return `The database ${database} sorts texts by version ${madeBy} of its locale, and its system now has ${present}. Indexes can miss rows. Stop the servers, and run as its owner: reindex database ${database}; alter database ${database} refresh collation version;`
}

const MISSING_STANDBY =
  'Commits wait for a synchronous standby. Start it, or correct synchronous_standby_names'
/** A commit that waits for longer than this waits for a standby that is missing. */
const STANDBY_S = 1
/** A write that takes longer may wait for a standby. */
const WRITE_MS = 700
const LATE = Symbol('late')

/**
 * Checks that the database stores and commits rows, with a test write. Returns the reason if it
 * does not. `sql` needs two connections: one of them waits with a write that a missing standby
 * holds up.
 */
export async function findWriteProblem(sql: Sql): Promise<string | undefined> {
  // Another test write would wait as well, and keep its connection until the standby is back.
  if (await isWaitingForStandby(sql, STANDBY_S)) return MISSING_STANDBY
  const write = sql`select check_writes()`.then(() => undefined, describeUnavailable)
  const result = await withTimeout(WRITE_MS, write, () => LATE)
  if (typeof result !== 'symbol') return result
  return (await isWaitingForStandby(sql, 0)) ? MISSING_STANDBY : write
}

/** Returns whether a session of this user has waited for a standby for that long. */
async function isWaitingForStandby(sql: Sql, seconds: number): Promise<boolean> {
  const [row] = await sql<[{ is_waiting: boolean }]>`
    select exists (
      select from pg_stat_activity
      where
        datname = current_database() and wait_event = 'SyncRep'
        and state_change < clock_timestamp() - make_interval(secs => ${seconds})
    ) as is_waiting
  `
  return row.is_waiting
}

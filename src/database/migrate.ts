import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseUrl } from '../base/database-url.ts'
import { DamagedFiles } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import { compareVersions, VERSION } from '../base/version.ts'
import { toArray } from './arrays.ts'
import { isDistributed, shareFunctions } from './distribute.ts'
import { toLock } from './locks.ts'
import { findCollationProblem, findDatabaseProblem } from './requirements.ts'
import { connect, sqlState, type Queryable, type Sql, type Tx } from './sql.ts'
import {
  BASELINE_VERSION,
  FUNCTIONS,
  MIGRATIONS,
  type FunctionSet,
  type Migration,
} from './sql-files.ts'
import { isOlder, isReplaced, readFunctions, replaceFunctions } from './stored-functions.ts'
import { fixSearchPath, listCreated } from './tables.ts'

const log = logger('migrate')
/** The table of the applied migrations. */
export const MIGRATIONS_TABLE = 'migrations'
/** Stands for the functions in a list of migrations. */
export const FUNCTIONS_NAME = 'functions'
/**
 * How long a migration waits for a lock on a table. Statements of running servers queue behind it,
 * and give up after a second.
 */
const LOCK_MS = 400
/**
 * Every fifth try waits this much longer than deadlock_timeout. Only then does Postgres cancel an
 * autovacuum of the table, which can take hours.
 */
const CANCEL_MS = 500
const TRIES_TO_CANCEL = 5
const LOCK_TIMEOUT = '55P03'
const DEADLOCK = '40P01'
const RETRY_MS = 200

interface MigrationState extends Migration {
  isApplied: boolean
}

interface StoredMigration {
  name: string
  checksum: string
  oldest_server: string | null
}

/**
 * Applies the pending migrations to the database at `url`, each in its own transaction. The last of
 * these also replaces the functions, if this version has others; with a part of the migrations, it
 * does not. Concurrent programs take turns. Returns the names of the applied migrations, and
 * 'functions' if they were replaced. Throws when a newer program has applied a migration that
 * breaks this one, or when a migration was edited after it was applied.
 */
export async function migrate(
  url: string,
  migrations = MIGRATIONS,
  functions = FUNCTIONS,
): Promise<string[]> {
  const sql = connect(url, {
    name: 'migrate',
    max: 1,
    settings: { statement_timeout: 0, lock_timeout: 0 },
  })
  try {
    const problem = await findDatabaseProblem(sql)
    if (problem !== undefined) throw new Error(problem)
    const collationProblem = await findCollationProblem(sql)
    if (collationProblem !== undefined) log.warning('{problem}', { problem: collationProblem })
    const isFirst = !(await hasSchema(sql))
    if (isFirst && parseUrl(url).searchPath === undefined) await refuseOtherSchema(sql)
    if (isFirst) await refuseForeignTables(sql, migrations)
    const applied: string[] = []
    // A new database has nothing whose changes somebody would want to follow.
    const level = isFirst ? 'debug' : 'info'
    for (;;) {
      const { name, areReplaced } = await applyWhenFree(sql, { migrations, functions })
      if (name !== undefined) {
        log[level]('Applied migration {name}', { name })
        applied.push(name)
      }
      if (areReplaced) {
        log[level]('Replaced the functions by those of {version}', { version: functions.version })
        applied.push(FUNCTIONS_NAME)
      }
      if (name === undefined) break
    }
    if (isFirst && applied.length > 0) log.info('Created the schema')
    if (applied.length > 0 && (await isDistributed(sql))) await shareFunctions(sql)
    return applied
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Applies the pending migrations and the functions in the transaction of the caller. */
export async function migrateWithin(tx: Tx, migrations: readonly Migration[]): Promise<void> {
  for (;;) {
    const { name } = await applyNext(tx, { migrations, functions: FUNCTIONS }, false)
    if (name === undefined) return
  }
}

/** Returns whether Tidings has made its schema in the database, in any version. */
export async function hasSchema(sql: Queryable): Promise<boolean> {
  return (await readStored(sql)).length > 0
}

/** Lists the migrations of this program and their state in the database. Throws like `migrate`. */
export async function listMigrations(
  sql: Queryable,
  migrations = MIGRATIONS,
): Promise<MigrationState[]> {
  const rows = await readStored(sql)
  const stored = new Map(rows.map(row => [row.name, row.checksum]))
  if (findBreaking(rows, migrations)) throw toNewerError(listUnknown(rows, migrations))
  return migrations.map(one => {
    const isApplied = isIn(one, new Set(stored.keys()))
    if (isApplied === undefined) {
      throw new Error(
        `The database is of a Tidings before ${BASELINE_VERSION}. Nothing was changed. ` +
          `Upgrade it to ${BASELINE_VERSION} first: start that version on it once. Then start this one.`,
      )
    }
    const edited = Object.entries(listRows(one)).find(
      ([name, checksum]) => isApplied && stored.get(name) !== checksum,
    )
    if (edited) {
      throw new Error(
        `Migration ${edited[0]} was edited after it was applied to this database. ` +
          'Back up with the version of Tidings that applied it, and restore the backup with this ' +
          'one into an empty place. No release edits a migration.',
      )
    }
    return { ...one, isApplied }
  })
}

/** Returns whether `migrate` replaces the functions of the database. */
export async function hasOtherFunctions(sql: Queryable, functions = FUNCTIONS): Promise<boolean> {
  return isReplaced(await readFunctions(sql), functions)
}

/**
 * Returns why this program cannot work on the schema of the database. Undefined if it can: all its
 * migrations are applied, the functions are not older, and migrations of newer versions are
 * additive.
 */
export async function findSchemaProblem(sql: Sql): Promise<string | undefined> {
  const rows = await readStored(sql)
  const functions = await readFunctions(sql)
  const names = new Set(rows.map(({ name }) => name))
  if (!MIGRATIONS.every(one => isIn(one, names)) || isOlder(functions, FUNCTIONS))
    return 'The schema of the database is older than this program'
  if (!functions?.find_tables)
    return 'The functions of the database were made for a schema of another name'
  const breaking = findBreaking(rows, MIGRATIONS)
  return (
    breaking && `The schema of the database requires Tidings ${breaking.oldest_server} or newer`
  )
}

/**
 * Throws when the schema has a migration that this program does not contain. For work on all
 * tables, because this program does not know all of them then.
 */
export async function refuseNewerSchema(sql: Queryable, migrations = MIGRATIONS): Promise<void> {
  const newer = listUnknown(await readStored(sql), migrations)
  if (newer.length > 0) throw toNewerError(newer)
}

/** Throws when the tables are in a schema that a setting of the role named before. */
async function refuseOtherSchema(sql: Sql): Promise<void> {
  const [other] = await sql<{ name: string }[]>`
    select n.nspname as name
    from pg_namespace n
    join pg_class m on m.relnamespace = n.oid and m.relname = ${MIGRATIONS_TABLE}
    join pg_class o on o.relnamespace = n.oid and o.relname = 'outbox'
    where has_schema_privilege(n.oid, 'usage')
  `
  if (!other) return
  throw new Error(
    `The database has an installation of Tidings in the schema ${other.name}. Append schema=${encodeURIComponent(other.name)} to the parameters of DATABASE_URL to use it, or schema=public for a new one.`,
  )
}

/** Throws when a program other than Tidings has tables where this one would create its own. */
async function refuseForeignTables(sql: Sql, migrations: readonly Migration[]): Promise<void> {
  const [found] = await sql<{ schema: string; name: string }[]>`
    select current_schema() as schema, relname as name
    from pg_class
    where relnamespace = quote_ident(current_schema())::regnamespace
      and relname = any(${toArray(listCreated(migrations))}::text[])
      -- Another server can have created them just now.
      and to_regclass('migrations') is null
    order by relname
    limit 1
  `
  if (found) throw toForeignError(found)
}

function toForeignError({ schema, name }: { schema: string; name: string }): Error {
  return new Error(
    `The schema ${schema} has a table ${name} of another program. Nothing was changed. ` +
      'Create a database for Tidings alone. Or run `create schema tidings` in this one, and append schema=tidings to the parameters of DATABASE_URL.',
  )
}

interface Schema {
  migrations: readonly Migration[]
  functions: FunctionSet
}

/** The work of one transaction. Without a name, no migration was pending. */
interface Step {
  name: string | undefined
  areReplaced: boolean
}

/** Applies the next migration, once no long transaction uses its tables. */
async function applyWhenFree(sql: Sql, schema: Schema): Promise<Step> {
  for (let tries = 1; ; tries++) {
    const cancels = tries % TRIES_TO_CANCEL === 0
    try {
      return await sql.begin(tx => applyNext(tx, schema, cancels))
    } catch (error) {
      const state = sqlState(error)
      if (state !== LOCK_TIMEOUT && state !== DEADLOCK) throw error
      log.info('A migration waits for the end of a transaction')
      await sleep(RETRY_MS)
    }
  }
}

/**
 * Applies the first pending migration under the lock, and after the last one the functions.
 * `cancels` lets it wait until Postgres has canceled an autovacuum.
 */
async function applyNext(
  tx: Tx,
  { migrations, functions }: Schema,
  cancels: boolean,
): Promise<Step> {
  await tx`select pg_advisory_xact_lock(${toLock(tx, 'migrations')})`
  await fixSearchPath(tx)
  await tx`
    create table if not exists migrations (
      name text primary key, checksum text not null, oldest_server text,
      applied_at timestamptz not null default now()
    )
  `
  const [next, ...later] = (await listMigrations(tx, migrations)).filter(one => !one.isApplied)
  const areReplaced =
    later.length === 0 &&
    // A function may need any of the tables.
    MIGRATIONS.every(({ name }) => migrations.some(one => one.name === name)) &&
    isReplaced(await readFunctions(tx), functions) &&
    // Citus refuses to replace functions after it has changed several nodes at once.
    !(next && (await isDistributed(tx)))
  if (next || areReplaced) await limitLockWait(tx, cancels)
  if (next) {
    const rows = listRows(next)
    await tx.unsafe(next.text)
    await tx`
      insert into migrations (name, checksum, oldest_server)
      select name, checksum, ${findOldestServer(next) ?? null}
      from unnest(${toArray(Object.keys(rows))}::text[], ${toArray(Object.values(rows))}::text[]) as r (name, checksum)
    `
  }
  if (areReplaced) await replaceFunctions(tx, functions)
  return { name: next?.name, areReplaced }
}

async function limitLockWait(tx: Tx, cancels: boolean): Promise<void> {
  const [{ deadlock_ms }] = await tx<[{ deadlock_ms: number }]>`
    select extract(epoch from current_setting('deadlock_timeout')::interval)::float8 * 1000 as deadlock_ms
  `
  const waitMs = cancels ? Math.round(deadlock_ms) + CANCEL_MS : LOCK_MS
  await tx.unsafe(`set local lock_timeout = ${waitMs}`)
}

/** Returns the rows of the database that an applied migration has: checksums by their names. */
export function listRows(one: Migration): Readonly<Record<string, string>> {
  return one.replaces ?? { [one.name]: toChecksum(one) }
}

/** Returns whether rows of these names have a migration. Undefined if they have a part of it. */
export function isIn(one: Migration, names: ReadonlySet<string>): boolean | undefined {
  const own = new Set(Object.keys(listRows(one)))
  return own.isSubsetOf(names) || (own.isDisjointFrom(names) ? false : undefined)
}

/** Returns the oldest version that works with the migration. Undefined if it is additive. */
export function findOldestServer({ text }: Migration): string | undefined {
  return /^-- Oldest server: (\d+\.\d+\.\d+)$/m.exec(text)?.[1]
}

/** Reads the applied migrations. An empty database has none. */
async function readStored(sql: Queryable): Promise<StoredMigration[]> {
  const [found] = await sql<{ schema: string; is_own: boolean; has_events: boolean }[]>`
    select
      n.nspname as schema, to_regclass('event_logs') is not null as has_events,
      exists (select from pg_attribute where attrelid = c.oid and attname = 'checksum') as is_own
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where c.oid = to_regclass('migrations')
  `
  if (!found) return []
  if (!found.is_own) throw toForeignError({ schema: found.schema, name: MIGRATIONS_TABLE })
  const rows = await sql<StoredMigration[]>`
    select name, checksum, oldest_server from migrations order by name
  `
  // The file was cut off, and must not count as an empty database.
  if (rows.length === 0 && found.has_events)
    throw new DamagedFiles('The table migrations has no rows.')
  return rows
}

/** Returns those of the rows of migrations that this program does not contain. */
export function listUnknown<Row extends { name: string }>(
  rows: readonly Row[],
  migrations: readonly Migration[],
): Row[] {
  const own = new Set(migrations.flatMap(one => Object.keys(listRows(one))))
  return rows.filter(({ name }) => !own.has(name))
}

/** Returns a migration of a newer program with which this one does not work. */
function findBreaking(
  rows: readonly StoredMigration[],
  migrations: readonly Migration[],
): StoredMigration | undefined {
  return listUnknown(rows, migrations).find(
    one => one.oldest_server !== null && compareVersions(one.oldest_server, VERSION) > 0,
  )
}

function toNewerError(newer: readonly { name: string }[]): Error {
  return new Error(
    `The database has migrations of a newer Tidings: ${newer.map(({ name }) => name).join(', ')}. ` +
      'Run that newer version, or restore a backup from before the upgrade.',
  )
}

/** Returns the SHA-256 of the text in hex. */
function toChecksum({ text }: Migration): string {
  return createHash('sha256').update(text).digest('hex')
}

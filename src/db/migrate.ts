import accounts from '../../sql/0001_accounts.sql' with { type: 'text' }
import keys from '../../sql/0002_keys.sql' with { type: 'text' }
import audit from '../../sql/0003_audit.sql' with { type: 'text' }
import limits from '../../sql/0004_limits.sql' with { type: 'text' }
import channels from '../../sql/0005_channels.sql' with { type: 'text' }
import identities from '../../sql/0006_identities.sql' with { type: 'text' }
import events from '../../sql/0007_events.sql' with { type: 'text' }
import deletion from '../../sql/0008_deletion.sql' with { type: 'text' }
import search from '../../sql/0009_search.sql' with { type: 'text' }
import unread from '../../sql/0010_unread.sql' with { type: 'text' }
import users from '../../sql/0011_users.sql' with { type: 'text' }
import erasure from '../../sql/0012_erasure.sql' with { type: 'text' }
import outbox from '../../sql/0013_outbox.sql' with { type: 'text' }
import push from '../../sql/0014_push.sql' with { type: 'text' }
import webhooks from '../../sql/0015_webhooks.sql' with { type: 'text' }
import reaper from '../../sql/0016_reaper.sql' with { type: 'text' }
import installation from '../../sql/0017_installation.sql' with { type: 'text' }
import clock from '../../sql/0018_clock.sql' with { type: 'text' }
import reading from '../../sql/0019_reading.sql' with { type: 'text' }
import passkeys from '../../sql/0020_passkeys.sql' with { type: 'text' }
import openid from '../../sql/0021_openid.sql' with { type: 'text' }
import tokens from '../../sql/0022_tokens.sql' with { type: 'text' }
import secondFactor from '../../sql/0023_second_factor.sql' with { type: 'text' }
import insights from '../../sql/0024_insights.sql' with { type: 'text' }
import searchGroups from '../../sql/0025_search_groups.sql' with { type: 'text' }
import timeline from '../../sql/0026_timeline.sql' with { type: 'text' }
import archive from '../../sql/0027_archive.sql' with { type: 'text' }
import sampleProjects from '../../sql/0028_sample_projects.sql' with { type: 'text' }
import expiry from '../../sql/0029_expiry.sql' with { type: 'text' }
import views from '../../sql/0030_views.sql' with { type: 'text' }
import viewBells from '../../sql/0031_view_bells.sql' with { type: 'text' }
import archiveDeletion from '../../sql/0032_archive_deletion.sql' with { type: 'text' }
import indexing from '../../sql/0033_indexing.sql' with { type: 'text' }
import append from '../../sql/0034_append.sql' with { type: 'text' }
import eventText from '../../sql/0035_event_text.sql' with { type: 'text' }
import logReads from '../../sql/0036_log_reads.sql' with { type: 'text' }
import userSearch from '../../sql/0037_user_search.sql' with { type: 'text' }
import logUsers from '../../sql/0038_log_users.sql' with { type: 'text' }
import logDeletion from '../../sql/0039_log_deletion.sql' with { type: 'text' }
import webhookAttempts from '../../sql/0040_webhook_attempts.sql' with { type: 'text' }
import dispatch from '../../sql/0041_dispatch.sql' with { type: 'text' }
import pushRefusals from '../../sql/0042_push_refusals.sql' with { type: 'text' }
import locks from '../../sql/0043_locks.sql' with { type: 'text' }
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { logger } from '../log.ts'
import { compareVersions, VERSION } from '../version.ts'
import { adaptFunctions, isDistributed } from './distribute.ts'
import { toLock } from './locks.ts'
import { connect, sqlState, type Queryable, type Sql, type Tx } from './sql.ts'

/**
 * A file of /sql. It is additive: servers of earlier versions keep working while it runs and
 * afterwards. A breaking one has a line `-- Oldest server: 0.3.0`, the oldest version that still
 * works.
 */
export interface Migration {
  name: string
  text: string
}

/**
 * All files of /sql in order, bundled as text. The files of a release are never edited.
 */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001_accounts', text: accounts },
  { name: '0002_keys', text: keys },
  { name: '0003_audit', text: audit },
  { name: '0004_limits', text: limits },
  { name: '0005_channels', text: channels },
  { name: '0006_identities', text: identities },
  { name: '0007_events', text: events },
  { name: '0008_deletion', text: deletion },
  { name: '0009_search', text: search },
  { name: '0010_unread', text: unread },
  { name: '0011_users', text: users },
  { name: '0012_erasure', text: erasure },
  { name: '0013_outbox', text: outbox },
  { name: '0014_push', text: push },
  { name: '0015_webhooks', text: webhooks },
  { name: '0016_reaper', text: reaper },
  { name: '0017_installation', text: installation },
  { name: '0018_clock', text: clock },
  { name: '0019_reading', text: reading },
  { name: '0020_passkeys', text: passkeys },
  { name: '0021_openid', text: openid },
  { name: '0022_tokens', text: tokens },
  { name: '0023_second_factor', text: secondFactor },
  { name: '0024_insights', text: insights },
  { name: '0025_search_groups', text: searchGroups },
  { name: '0026_timeline', text: timeline },
  { name: '0027_archive', text: archive },
  { name: '0028_sample_projects', text: sampleProjects },
  { name: '0029_expiry', text: expiry },
  { name: '0030_views', text: views },
  { name: '0031_view_bells', text: viewBells },
  { name: '0032_archive_deletion', text: archiveDeletion },
  { name: '0033_indexing', text: indexing },
  { name: '0034_append', text: append },
  { name: '0035_event_text', text: eventText },
  { name: '0036_log_reads', text: logReads },
  { name: '0037_user_search', text: userSearch },
  { name: '0038_log_users', text: logUsers },
  { name: '0039_log_deletion', text: logDeletion },
  { name: '0040_webhook_attempts', text: webhookAttempts },
  { name: '0041_dispatch', text: dispatch },
  { name: '0042_push_refusals', text: pushRefusals },
  { name: '0043_locks', text: locks },
]

const log = logger('migrate')
/** The table of the applied migrations. */
export const MIGRATIONS_TABLE = 'migrations'
/** The lock of migrations that servers of 0.2.0 take. */
const LOCK_OF_0_2_0 = 7_134_203_961
export const OLDEST_POSTGRES = 150_000
/**
 * How long a migration waits for a lock on a table. Statements of running servers queue behind it,
 * and give up after a second.
 */
const LOCK_MS = 400
const LOCK_TIMEOUT = '55P03'
const RETRY_MS = 200

export interface MigrationState extends Migration {
  checksum: string
  isApplied: boolean
}

interface StoredMigration {
  name: string
  checksum: string
  oldest_server: string | null
}

/**
 * Applies the pending migrations to the database at `url`, each in its own transaction. Concurrent
 * programs take turns. Returns the names of the applied migrations. Throws when a newer program has
 * applied a migration that breaks this one, or when a migration was edited after it was applied.
 */
export async function migrate(url: string, migrations = MIGRATIONS): Promise<string[]> {
  const sql = connect(url, {
    name: 'migrate',
    max: 1,
    settings: { statement_timeout: 0, lock_timeout: 0 },
  })
  try {
    await checkPostgres(sql)
    const isFirst = !(await hasSchema(sql))
    const applied: string[] = []
    for (;;) {
      const name = await applyWhenFree(sql, migrations)
      if (name === undefined) break
      // A new database has nothing whose changes somebody would want to follow.
      log[isFirst ? 'debug' : 'info']('Applied migration {name}', { name })
      applied.push(name)
    }
    if (isFirst && applied.length > 0) log.info('Created the schema')
    if (applied.length > 0 && (await isDistributed(sql))) await adaptFunctions(sql)
    return applied
  } finally {
    await sql.end({ timeout: 1 })
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
    const checksum = toChecksum(one)
    const before = stored.get(one.name)
    if (before !== undefined && before !== checksum) {
      throw new Error(
        `Migration ${one.name} was edited after it was applied to this database. ` +
          'Back up with the version of Tidings that applied it, and restore the backup with this ' +
          'one into an empty place. No release edits a migration.',
      )
    }
    return { ...one, checksum, isApplied: before !== undefined }
  })
}

/**
 * Returns why this program cannot work on the schema of the database. Undefined if it can: all its
 * migrations are applied, and those of newer versions are additive.
 */
export async function findSchemaProblem(sql: Sql): Promise<string | undefined> {
  const rows = await readStored(sql)
  const stored = new Set(rows.map(({ name }) => name))
  if (!MIGRATIONS.every(({ name }) => stored.has(name)))
    return 'The schema of the database is older than this program'
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

/** Applies the next migration, once no long transaction uses its tables. */
async function applyWhenFree(
  sql: Sql,
  migrations: readonly Migration[],
): Promise<string | undefined> {
  for (;;) {
    try {
      return await sql.begin(tx => applyNext(tx, migrations))
    } catch (error) {
      if (sqlState(error) !== LOCK_TIMEOUT) throw error
      log.info('A migration waits for the end of a transaction')
      await sleep(RETRY_MS)
    }
  }
}

/** Applies the first pending migration under the lock. Returns its name, or undefined if none. */
async function applyNext(tx: Tx, migrations: readonly Migration[]): Promise<string | undefined> {
  await tx`select pg_advisory_xact_lock(${LOCK_OF_0_2_0}::bigint)`
  await tx`select pg_advisory_xact_lock(${toLock(tx, 'migrations')})`
  await tx`
    create table if not exists migrations (
      name text primary key, checksum text not null, oldest_server text,
      applied_at timestamptz not null default now()
    )
  `
  const next = (await listMigrations(tx, migrations)).find(one => !one.isApplied)
  if (!next) return undefined
  await tx.unsafe(`set local lock_timeout = ${LOCK_MS}`)
  await tx.unsafe(next.text)
  await tx`
    insert into migrations (name, checksum, oldest_server)
    values (${next.name}, ${next.checksum}, ${findOldestServer(next) ?? null})
  `
  return next.name
}

/** Returns the oldest version that works with the migration. Undefined if it is additive. */
export function findOldestServer({ text }: Migration): string | undefined {
  return /^-- Oldest server: (\d+\.\d+\.\d+)$/m.exec(text)?.[1]
}

/** Reads the applied migrations. An empty database has none. */
async function readStored(sql: Queryable): Promise<StoredMigration[]> {
  const [found] = await sql<[{ name: string | null }]>`
    select to_regclass('migrations')::text as name
  `
  if (!found.name) return []
  // A checkout before 0.2.0 made the table without oldest_server.
  return sql<StoredMigration[]>`
    select name, checksum, to_jsonb(migrations) ->> 'oldest_server' as oldest_server
    from migrations
    order by name
  `
}

/** Returns the migrations of the database that this program does not contain. */
function listUnknown<Row extends { name: string }>(
  rows: readonly Row[],
  migrations: readonly Migration[],
): Row[] {
  const own = new Set(migrations.map(({ name }) => name))
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

async function checkPostgres(sql: Sql): Promise<void> {
  const [row] = await sql<[{ version: number; fsync: string }]>`
    select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync
  `
  if (row.version < OLDEST_POSTGRES) {
    throw new Error(
      `Tidings requires PostgreSQL 15 or newer. This server runs ${(row.version / 10_000) | 0}.`,
    )
  }
  if (row.fsync === 'off') {
    throw new Error(
      'This PostgreSQL runs with fsync = off, which loses events in a crash. Set fsync = on.',
    )
  }
}

/** Returns the SHA-256 of the text in hex. */
export function toChecksum({ text }: Migration): string {
  return createHash('sha256').update(text).digest('hex')
}

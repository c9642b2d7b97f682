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
import { createHash } from 'node:crypto'
import { logger } from '../log.ts'
import { connect, type Queryable, type Sql, type Tx } from './sql.ts'

export interface Migration {
  name: string
  text: string
}

/**
 * All files of /sql in order, bundled as text. From 0.2.0 on, a released migration is never edited.
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
]

const log = logger('migrate')
/** The table of the applied migrations. */
export const MIGRATIONS_TABLE = 'migrations'
/** The advisory lock of migrations, held by one server at a time. The number is arbitrary. */
const LOCK = 7_134_203_961
const OLDEST_POSTGRES = 150_000

export interface MigrationState extends Migration {
  checksum: string
  isApplied: boolean
}

/**
 * Applies the pending migrations to the database at `url`, each in its own transaction. Concurrent
 * programs take turns. Returns the names of the applied migrations. Throws when the schema is newer
 * than the program, or when a migration was edited after it was applied.
 */
export async function migrate(url: string, migrations = MIGRATIONS): Promise<string[]> {
  const sql = connect(url, {
    name: 'migrate',
    max: 1,
    settings: { statement_timeout: 0, lock_timeout: 0 },
  })
  try {
    await checkPostgres(sql)
    const applied: string[] = []
    for (;;) {
      const name = await sql.begin(tx => applyNext(tx, migrations))
      if (name === undefined) return applied
      log.info('Applied migration {name}', { name })
      applied.push(name)
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Lists the migrations of this program and their state in the database. Throws like `migrate`. */
export async function listMigrations(sql: Sql, migrations = MIGRATIONS): Promise<MigrationState[]> {
  const [found] = await sql<
    [{ name: string | null }]
  >`select to_regclass('migrations')::text as name`
  if (found.name) return readState(sql, migrations)
  return migrations.map(one => ({ ...one, checksum: toChecksum(one), isApplied: false }))
}

/** Returns true when the database has exactly the migrations of this program. */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ names: string }]>`
    select coalesce(string_agg(name, ' ' order by name), '') as names from migrations
  `
  return row.names === MIGRATIONS.map(one => one.name).join(' ')
}

/** Applies the first pending migration under the lock. Returns its name, or undefined if none. */
async function applyNext(tx: Tx, migrations: readonly Migration[]): Promise<string | undefined> {
  await tx`select pg_advisory_xact_lock(${LOCK}::bigint)`
  await tx`
    create table if not exists migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now()
    )
  `
  const next = (await readState(tx, migrations)).find(one => !one.isApplied)
  if (!next) return undefined
  await tx.unsafe(next.text)
  await tx`insert into migrations (name, checksum) values (${next.name}, ${next.checksum})`
  return next.name
}

async function readState(
  sql: Queryable,
  migrations: readonly Migration[],
): Promise<MigrationState[]> {
  const rows = await sql<{ name: string; checksum: string }[]>`
    select name, checksum from migrations order by name
  `
  const stored = new Map(rows.map(row => [row.name, row.checksum]))
  const own = new Set(migrations.map(one => one.name))
  const unknown = rows.map(row => row.name).filter(name => !own.has(name))
  if (unknown.length > 0) {
    throw new Error(
      `The database has migrations of a newer Tidings: ${unknown.join(', ')}. ` +
        'Run that newer version, or restore a backup from before the upgrade.',
    )
  }
  return migrations.map(one => {
    const checksum = toChecksum(one)
    const before = stored.get(one.name)
    if (before !== undefined && before !== checksum) {
      throw new Error(
        `Migration ${one.name} was edited after it was applied to this database. ` +
          'Run the version of Tidings that applied it.',
      )
    }
    return { ...one, checksum, isApplied: before !== undefined }
  })
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

function toChecksum({ text }: Migration): string {
  return createHash('sha256').update(text).digest('hex')
}

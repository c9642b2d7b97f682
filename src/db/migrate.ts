import { createHash } from 'node:crypto'
import { logger } from '../log.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'
import { connect, type Queryable, type Sql, type Tx } from './sql.ts'

const log = logger('migrate')
/** Serialises all servers that start at once; the number means nothing. */
const LOCK = 7_134_203_961
const OLDEST_POSTGRES = 150_000

export interface MigrationState extends Migration {
  checksum: string
  isApplied: boolean
}

/**
 * Brings the database at `url` to this program's schema: each migration in a transaction of its own, one program at a
 * time. Returns the names of those applied now. Throws when the schema is newer than the program, or when a
 * migration was changed after it was applied.
 */
export async function migrate(url: string, migrations = MIGRATIONS): Promise<string[]> {
  const sql = connect(url, {
    name: 'migrate',
    max: 1,
    settings: { statement_timeout: 0, lock_timeout: 0 },
  })
  try {
    await checkServer(sql)
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

/** Every migration of this program, and whether the database has it. Throws like `migrate`. */
export async function listMigrations(sql: Sql, migrations = MIGRATIONS): Promise<MigrationState[]> {
  const [found] = await sql<
    [{ name: string | null }]
  >`select to_regclass('migrations')::text as name`
  if (found.name) return readState(sql, migrations)
  return migrations.map(one => ({ ...one, checksum: toChecksum(one), isApplied: false }))
}

/** Whether the database has exactly the migrations of this program. */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ names: string }]>`
    select coalesce(string_agg(name, ' ' order by name), '') as names from migrations
  `
  return row.names === MIGRATIONS.map(one => one.name).join(' ')
}

/** Applies the first pending migration, alone under the lock, and returns its name. */
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
      `The database was made by a newer Tidings: it has ${unknown.join(', ')}, which this program does not know. ` +
        'Run that newer version, or restore a backup made before the upgrade.',
    )
  }
  return migrations.map(one => {
    const checksum = toChecksum(one)
    const before = stored.get(one.name)
    if (before !== undefined && before !== checksum) {
      throw new Error(`Migration ${one.name} was changed after it was applied to this database.`)
    }
    return { ...one, checksum, isApplied: before !== undefined }
  })
}

async function checkServer(sql: Sql): Promise<void> {
  const [row] = await sql<[{ version: number; fsync: string }]>`
    select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync
  `
  if (row.version < OLDEST_POSTGRES) {
    throw new Error(
      `Tidings needs PostgreSQL 15 or newer; this server is ${(row.version / 10_000) | 0}.`,
    )
  }
  if (row.fsync === 'off') {
    throw new Error(
      'This PostgreSQL runs with fsync = off, which loses events in a crash. Turn it on.',
    )
  }
}

function toChecksum({ text }: Migration): string {
  return createHash('sha256').update(text).digest('hex')
}

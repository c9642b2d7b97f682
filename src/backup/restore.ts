import { COMMAND_LINE, writeAudit } from '../audit/audit.ts'
import { COPY_SETTINGS, copyIn, quoteIdentifier, toCopyTarget } from '../db/copy.ts'
import { listMigrations, migrate, MIGRATIONS, type Migration } from '../db/migrate.ts'
import { connect, LOCK_TIMEOUT, sqlState, type Sql, type Tx } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { openSecrets } from '../secrets/open-secrets.ts'
import type { BackupOptions } from './backup.ts'
import {
  DamagedBackupError,
  parseHeader,
  parseLine,
  RowCounts,
  TableHeader,
  type BackupHeader,
  openBackupReader,
  type BackupReader,
} from './format.ts'
import { openBackupKeys } from './passphrase.ts'
import { createResealer, resealRows, type KeyChange, listTables, type Table } from './rows.ts'

export interface RestoreResult {
  /** The version of Tidings that made the backup, and when (ISO 8601). */
  version: string
  createdAt: string
  /** Rows by table. */
  rows: Record<string, number>
}

/** The longest wait for locks that other programs hold. */
const LOCK_MS = 10_000

/**
 * Restores a backup into the empty database at `url`, in one transaction that commits when the backup is proven whole.
 * Secrets are sealed with the APP_SECRET of `source`, the feed begins a new epoch, sessions and links end. Throws with a
 * sentence for people, and then nothing was restored.
 */
export async function restoreBackup(
  url: string,
  file: string,
  { source, sealedTables, passphrase }: Omit<BackupOptions, 'signal'>,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<RestoreResult> {
  const reader = openBackupReader(file)
  const sql = connect(url, {
    name: 'restore',
    max: 1,
    settings: { ...COPY_SETTINGS, lock_timeout: LOCK_MS },
  })
  try {
    const head = parseHeader(await reader.line())
    const lock = await openBackupKeys(passphrase, head)
    reader.setMacKey(lock.macKey)
    await ensureSchema(sql, url, { head, migrations })
    const secrets = await openSecrets(sql, source)
    const rows = await sql.begin(async tx => {
      const tables = await listTables(tx)
      await clearTables(tx, tables)
      const counts = await readTables(tx, reader, {
        tables,
        sealedTables,
        keyChange: { from: lock.secrets, to: secrets },
      })
      await finish(tx, tables)
      return counts
    })
    // The later migrations work on the restored rows, as at any upgrade.
    await migrate(url, migrations)
    return { version: head.version, createdAt: head.createdAt, rows }
  } catch (error) {
    if (sqlState(error) !== LOCK_TIMEOUT) throw error
    throw new Error('The database is in use: stop what runs on it. Nothing was restored.')
  } finally {
    reader.close()
    await sql.end({ timeout: 1 })
  }
}

/** Makes the schema of the backup. */
async function ensureSchema(
  sql: Sql,
  url: string,
  { head, migrations }: { head: BackupHeader; migrations: readonly Migration[] },
): Promise<void> {
  const known = new Set(migrations.map(({ name }) => name))
  const unknown = head.migrations.filter(name => !known.has(name))
  if (unknown.length > 0) {
    throw new Error(
      `The backup was made by a newer Tidings, ${head.version}: it has ${unknown.join(', ')}, which this program does ` +
        'not know. Restore it with that version.',
    )
  }
  const wanted = new Set(head.migrations)
  const later = (await listMigrations(sql, migrations)).filter(
    one => one.isApplied && !wanted.has(one.name),
  )
  if (later.length > 0) {
    throw new Error(
      `The database has a newer schema than the backup (${later.map(({ name }) => name).join(', ')}): restore into a ` +
        'database that no server has started on yet; the backup is brought up to date there.',
    )
  }
  await migrate(
    url,
    migrations.filter(({ name }) => wanted.has(name)),
  )
}

/** Removes the rows of a first start. Throws when there are accounts, events or users. */
async function clearTables(tx: Tx, tables: readonly Table[]): Promise<void> {
  const names = tables
    .filter(({ name }) => name !== 'sealed_canary')
    .map(({ name }) => quoteIdentifier(name))
  // Servers on this database answer 503 from here to the end.
  await tx.unsafe(`lock table ${names.join(', ')} in access exclusive mode`)
  const [found] = await tx<[{ people: boolean; events: boolean; identities: boolean }]>`
    select
      exists (select from people) as people,
      exists (select from events) as events,
      exists (select from identities) as identities
  `
  const there = Object.entries(found)
    .filter(([, any]) => any)
    .map(([what]) => what)
  if (there.length > 0) {
    throw new Error(
      `The database is not empty: it has ${there.join(' and ')}. Restore into a new one: another DATA_DIR or ` +
        'DATABASE_URL. Nothing was changed.',
    )
  }
  // The backup contains what triggers would write.
  for (const name of names) await tx.unsafe(`alter table ${name} disable trigger user`)
  await tx.unsafe(`truncate ${names.join(', ')}`)
}

interface RestorePlan {
  tables: readonly Table[]
  sealedTables: BackupOptions['sealedTables']
  keyChange: KeyChange
}

/** Returns the number of rows of each table; throws a `Damaged` unless they are those that the backup counted. */
async function readTables(
  tx: Tx,
  reader: BackupReader,
  { tables, sealedTables, keyChange }: RestorePlan,
): Promise<RestoreResult['rows']> {
  const rows: RestoreResult['rows'] = {}
  for (;;) {
    const line = await reader.line()
    if (line.startsWith('{"rows":')) {
      const counted = parseLine(RowCounts, line).rows
      await reader.end()
      const isSame = Object.entries(counted).every(([name, count]) => rows[name] === count)
      if (!isSame || Object.keys(counted).length !== Object.keys(rows).length)
        throw new DamagedBackupError()
      return rows
    }
    const { table: name, columns } = parseLine(TableHeader, line)
    const table = tables.find(one => one.name === name && one.isIncluded)
    if (!table || name in rows || columns.some(column => !table.columns.includes(column)))
      throw new DamagedBackupError()
    const sealed = sealedTables.find(one => one.table === name)
    const blocks = toCounted(reader.rows(), n => (rows[name] = n))
    const given = sealed ? resealRows(blocks, createResealer(sealed, columns, keyChange)) : blocks
    await copyIn(tx, `copy ${toCopyTarget(name, columns)} from stdin`, given).catch(
      (error: unknown) => {
        if (sqlState(error) === undefined) throw error
        throw new Error(
          `The database refused the rows of ${name}: ${toReason(error)}. Nothing was restored.`,
        )
      },
    )
  }
}

async function* toCounted(
  blocks: AsyncIterable<Buffer>,
  onEnd: (rows: number) => void,
): AsyncGenerator<Buffer> {
  let rows = 0
  for await (const block of blocks) {
    for (let at = block.indexOf('\n'); at >= 0; at = block.indexOf('\n', at + 1)) rows++
    yield block
  }
  onEnd(rows)
}

/** Ends sessions, begins a new epoch and enables the triggers again. */
async function finish(tx: Tx, tables: readonly Table[]): Promise<void> {
  // A session that was ended since would live again, so nobody's cookie opens anything; those of devices that take
  // notifications stay for these, until their browsers have signed in anew.
  await tx`
    delete from sessions s
    where not exists (select from push_subscriptions p where p.session_id = s.id)
  `
  await tx`
    update sessions set hash = sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
  `
  await tx`select renew_epoch()`
  await tx`
    select setval(pg_get_serial_sequence('alias_changes', 'id'), coalesce(max(id), 0) + 1, false) from alias_changes
  `
  await writeAudit(tx, COMMAND_LINE, { action: 'server.restored' })
  for (const { name } of tables) {
    if (name !== 'sealed_canary')
      await tx.unsafe(`alter table ${quoteIdentifier(name)} enable trigger user`)
  }
}

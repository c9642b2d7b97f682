import { COMMAND_LINE, writeAudit } from '../../access/audit/audit.ts'
import { toReason } from '../../base/errors.ts'
import { COPY_SETTINGS, copyIn, quoteIdentifier, toCopyTarget } from '../../database/copy.ts'
import {
  isIn,
  listMigrations,
  listUnknown,
  migrate,
  migrateWithin,
  refuseNewerSchema,
} from '../../database/migrate.ts'
import { openSecrets } from '../../database/secrets/open-secrets.ts'
import { BASELINE_VERSION, MIGRATIONS, type Migration } from '../../database/sql-files.ts'
import { connect, DEADLOCK, LOCK_TIMEOUT, sqlState, type Sql, type Tx } from '../../database/sql.ts'
import { listTables, type Table } from '../../database/tables.ts'
import { readErasedFile } from '../../log/identities/erased-file.ts'
import { findErasureKey } from '../../log/identities/erased-users.ts'
import { repeatErasures, type RepeatedErasures } from '../../log/identities/repeat-erasures.ts'
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
import { createResealer, isBackedUp, resealRows, type KeyChange, SEALED_TABLES } from './rows.ts'

export interface RestoreResult {
  /** The version of Tidings that made the backup. */
  version: string
  /** When the backup was made (ISO 8601). */
  createdAt: string
  /** The number of rows by table. */
  rows: Record<string, number>
  erased: RepeatedErasures
}

export interface RestoreOptions extends Omit<BackupOptions, 'signal' | 'isForced' | 'cost'> {
  /** The file with the list of erased users. A missing file is an empty list. */
  erasedFile: string
}

/** The maximum wait for locks of other programs. */
const LOCK_MS = 10_000
const MAX_DEADLOCKS = 10

/**
 * Restores a backup into the empty database at `url`. It is one transaction, which commits only
 * after the MAC of the whole backup was verified. Secrets are encrypted with the APP_SECRET of
 * `source`. Erasures after the backup begin again. The feed starts a new epoch,
 * and sessions and links end. When it throws, nothing was restored.
 */
export async function restoreBackup(
  url: string,
  file: string,
  { source, passphrase, erasedFile }: RestoreOptions,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<RestoreResult> {
  const reader = openBackupReader(file)
  const sql = connect(url, {
    name: 'restore',
    max: 1,
    settings: { ...COPY_SETTINGS, lock_timeout: LOCK_MS },
  })
  try {
    const header = parseHeader(await reader.line())
    const keys = await openBackupKeys(passphrase, header)
    reader.setMacKey(keys.macKey)
    await ensureSchema(sql, url, { header, migrations })
    const secrets = await openSecrets(sql, source)
    const { rows, erased } = await sql.begin(async tx => {
      const tables = await listTables(tx)
      await clearTables(tx, tables)
      const rows = await readTables(tx, reader, {
        tables,
        keyChange: { from: keys.secrets, to: secrets },
      })
      await enableTriggers(tx, tables)
      // On the restored rows, as in any upgrade.
      await migrateWithin(tx, migrations)
      // An erasure ends at the next id of these changes.
      await tx`
        select setval(pg_get_serial_sequence('alias_changes', 'id'), coalesce(max(id), 0) + 1, false)
        from alias_changes
      `
      const key = await findErasureKey(tx, secrets)
      const erased = await repeatErasures(tx, key, readErasedFile(erasedFile))
      await finish(tx, { createdAt: header.createdAt, erased })
      return { rows, erased }
    })
    return { version: header.version, createdAt: header.createdAt, rows, erased }
  } catch (error) {
    if (![LOCK_TIMEOUT, DEADLOCK].includes(sqlState(error) ?? '')) throw error
    throw new Error(
      'The database is in use. Nothing was restored. Stop every server on this database and try again.',
    )
  } finally {
    reader.close()
    await sql.end({ timeout: 1 })
  }
}

/** Creates the schema of the backup. Throws when the database has a newer one. */
async function ensureSchema(
  sql: Sql,
  url: string,
  { header, migrations }: { header: BackupHeader; migrations: readonly Migration[] },
): Promise<void> {
  const wanted = new Set(header.migrations)
  if (migrations.some(one => isIn(one, wanted) === undefined)) {
    throw new Error(
      `The backup was made by Tidings ${header.version}. This version restores backups of ${BASELINE_VERSION} ` +
        `and later. Nothing was restored. Restore it with ${BASELINE_VERSION}, and make a backup there.`,
    )
  }
  const rows = header.migrations.map(name => ({ name }))
  const unknown = listUnknown(rows, migrations).map(({ name }) => name)
  if (unknown.length > 0) {
    throw new Error(
      `The backup was made by a newer Tidings, with the migrations ${unknown.join(', ')}. Nothing was ` +
        `restored. Restore it with version ${header.version}.`,
    )
  }
  await refuseNewerSchema(sql, migrations)
  const later = (await listMigrations(sql, migrations)).filter(
    one => one.isApplied && !isIn(one, wanted),
  )
  if (later.length > 0) {
    throw new Error(
      `The schema of the database is newer than the backup (${later.map(({ name }) => name).join(', ')}). Nothing ` +
        'was restored. Restore into an empty database. Its schema is then upgraded.',
    )
  }
  await migrate(
    url,
    migrations.filter(one => isIn(one, wanted)),
  )
}

/** Deletes the rows that a first start created. Throws when there are accounts, events or users. */
async function clearTables(tx: Tx, tables: readonly Table[]): Promise<void> {
  const names = tables
    .filter(({ name }) => name !== 'sealed_canary')
    .map(({ name }) => quoteIdentifier(name))
  // Servers on this database respond with 503 until the restore ends.
  const lock = `lock table ${names.join(', ')} in access exclusive mode`
  for (let tries = 1, isLocked = false; !isLocked; tries++) {
    await tx
      .savepoint(one => one.unsafe(lock))
      .then(() => (isLocked = true))
      .catch((error: unknown) => {
        // A server can hold one of the tables while it waits for another.
        if (sqlState(error) !== DEADLOCK || tries === MAX_DEADLOCKS) throw error
      })
  }
  const nonEmpty: string[] = []
  if ((await tx`select from accounts limit 1`).count > 0) nonEmpty.push('accounts')
  if ((await tx`select from events limit 1`).count > 0) nonEmpty.push('events')
  if ((await tx`select from identities limit 1`).count > 0) nonEmpty.push('users')
  if (nonEmpty.length > 0) {
    throw new Error(
      `The database is not empty: it has ${nonEmpty.join(' and ')}. Nothing was changed. Restore into a ` +
        'new database: set another DATA_DIR or DATABASE_URL.',
    )
  }
  // The backup already contains the results of the triggers.
  for (const name of names) await tx.unsafe(`alter table ${name} disable trigger user`)
  await tx.unsafe(`truncate ${names.join(', ')}`)
}

/**
 * Restores all tables. Returns the number of rows by table. Throws a `DamagedBackupError` if one
 * differs from the backup's own count.
 */
async function readTables(
  tx: Tx,
  reader: BackupReader,
  { tables, keyChange }: { tables: readonly Table[]; keyChange: KeyChange },
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
    const table = tables.find(one => one.name === name && isBackedUp(one))
    if (!table || name in rows || columns.some(column => !table.columns.includes(column)))
      throw new DamagedBackupError()
    const sealed = SEALED_TABLES.find(one => one.table === name)
    const blocks = toCounted(reader.rows(), n => (rows[name] = n))
    const given = sealed ? resealRows(blocks, createResealer(sealed, columns, keyChange)) : blocks
    await copyIn(tx, `copy ${toCopyTarget(name, columns)} from stdin`, given).catch(
      (error: unknown) => {
        if (sqlState(error) === undefined) throw error
        throw new Error(
          `Nothing was restored. The database rejected the rows of ${name}: ${toReason(error)}`,
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

async function enableTriggers(tx: Tx, tables: readonly Table[]): Promise<void> {
  for (const { name } of tables) {
    if (name !== 'sealed_canary')
      await tx.unsafe(`alter table ${quoteIdentifier(name)} enable trigger user`)
  }
}

/** Sets the clock to the time of the backup, ends the sessions and starts a new epoch. */
async function finish(
  tx: Tx,
  { createdAt, erased: { erased } }: Pick<RestoreResult, 'createdAt' | 'erased'>,
): Promise<void> {
  // The next check finds the time since the backup, and moves the waits of deliveries by it.
  await tx`
    insert into clock (checked_at, untrusted_until)
    select b.at, case when b.at < now() - interval '1 hour' then now() + interval '1 day' end
    from (select ${createdAt}::text::timestamptz as at) b
  `
  // A session that ended after the backup would be valid again, so every cookie becomes invalid.
  // The sessions of push subscriptions stay, because deleting them would delete the subscriptions.
  await tx`
    delete from sessions s
    where not exists (select from push_subscriptions p where p.session_id = s.id)
  `
  await tx`
    update sessions set hash = sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
  `
  await tx`select renew_epoch()`
  await tx`update installation set id = epoch`
  await writeAudit(tx, COMMAND_LINE, {
    action: 'server.restored',
    details: { usersErasedAgain: erased || null },
  })
}

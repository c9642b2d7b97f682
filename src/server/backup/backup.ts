import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { COMMAND_LINE, writeAudit } from '../../access/audit/audit.ts'
import {
  COPY_SETTINGS,
  copyOut,
  readSnapshot,
  toBlocks,
  toCopyTarget,
} from '../../database/copy.ts'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { checkRows, findWrongCounts, type WrongCounts } from '../../database/damage.ts'
import { connect, type Tx } from '../../database/sql.ts'
import { hasSchema, refuseNewerSchema } from '../../database/migrate.ts'
import { listTables } from '../../database/tables.ts'
import { openSecrets, type SecretSource } from '../../database/secrets/open-secrets.ts'
import { findOwner, makePrivate, syncFolder } from '../../base/private-files.ts'
import { VERSION } from '../../base/version.ts'
import { findCopyName, removeAbandonedParts, toPartPath } from './copies.ts'
import { END_OF_ROWS, explainFileError, FORMAT, toLine } from './format.ts'
import { createBackupKeys, type ScryptCost } from './passphrase.ts'
import { createResealer, isBackedUp, resealRows, SEALED_TABLES } from './rows.ts'

const log = logger('backup')

export interface BackupOptions {
  /** Provides the APP_SECRET of the installation. */
  source: SecretSource
  /** Encrypts the secrets in the file, in place of the APP_SECRET. */
  passphrase: string
  /** The cost of guessing the passphrase, by default as OWASP recommends. */
  cost?: ScryptCost | undefined
  /** Replaces an existing file. */
  isForced?: boolean
  /** Aborts the backup and removes the file. */
  signal?: AbortSignal
}

/** A file, or a folder in which the backup is named by its time and its installation. */
export type BackupPlace = { file: string } | { folder: string; at: Date }

export interface BackupResult {
  /** The path of the backup. */
  file: string
  bytes: number
  /** The number of rows by table. */
  rows: Record<string, number>
  /** The projects whose counts of events are wrong, also in the file. */
  wrongCounts: WrongCounts[]
}

/** Three times as fast as the default level. The file is a tenth larger. */
const GZIP_LEVEL = 3

/**
 * Writes a snapshot of the database at `url` to a file. Servers can keep running. Memory use does
 * not grow with the database. The file appears once it is complete and on disk, with mode 0600. If
 * root writes it, it belongs to the owner of the file that it replaces, or of DATA_DIR.
 */
export async function writeBackup(
  url: string,
  place: BackupPlace,
  options: BackupOptions,
): Promise<BackupResult> {
  const sql = connect(url, { name: 'backup', max: 1, settings: COPY_SETTINGS })
  const rows: BackupResult['rows'] = {}
  let wrongCounts: WrongCounts[] = []
  let writing: Promise<number> | undefined
  try {
    if (!(await hasSchema(sql))) {
      throw new Error('There is nothing to back up: the database has no schema, it is empty.')
    }
    const file =
      'file' in place ? place.file : join(place.folder, await findCopyName(sql, place.at))
    // Before the snapshot, because the first call writes the canary.
    const secrets = await openSecrets(sql, options.source)
    const { check, scrypt, ...keys } = await createBackupKeys(options.passphrase, options.cost)
    const keyChange = { from: secrets, to: keys.secrets }

    async function* toText(tx: Tx): AsyncGenerator<Buffer> {
      await refuseNewerSchema(tx)
      const migrations = await tx<{ name: string }[]>`select name from migrations order by name`
      yield toLine({
        tidings: 'backup',
        format: FORMAT,
        version: VERSION,
        createdAt: new Date().toISOString(),
        migrations: migrations.map(({ name }) => name),
        scrypt,
        check,
      })
      for (const { name, columns } of (await listTables(tx)).filter(isBackedUp)) {
        yield toLine({ table: name, columns })
        const sealed = SEALED_TABLES.find(({ table }) => table === name)
        const source = copyOut(tx, `copy ${toCopyTarget(name, columns)} to stdout`)
        const blocks = toBlocks(source, n => (rows[name] = n))
        yield* sealed ? resealRows(blocks, createResealer(sealed, columns, keyChange)) : blocks
        yield Buffer.from(END_OF_ROWS)
      }
      await checkRows(tx, { ...rows, migrations: migrations.length })
      wrongCounts = await findWrongCounts(tx)
      yield toLine({ rows })
    }

    const bytes = await readSnapshot(sql, tx => {
      writing = writeFile(file, appendMac(toText(tx), keys.macKey), options)
      return writing
    })
    // Without its entry the backup is complete. The disk of the database may be full.
    await sql
      .begin(tx => writeAudit(tx, COMMAND_LINE, { action: 'server.backedUp' }))
      .catch((error: unknown) =>
        log.warning('The audit log lacks a backup: {reason}', { reason: toReason(error) }),
      )
    return { file, bytes, rows, wrongCounts }
  } finally {
    await sql.end({ timeout: 0 })
    // Wait until a failed write has removed its temporary file.
    await writing?.catch(() => {})
  }
}

async function* appendMac(text: AsyncIterable<Buffer>, key: Buffer): AsyncGenerator<Buffer> {
  const mac = createHmac('sha256', key)
  for await (const part of text) {
    mac.update(part)
    yield part
  }
  yield toLine({ mac: mac.digest('base64url') })
}

/** Compresses the text to a temporary file, and renames it once it is on disk. Returns its size.
 * Throws if the file exists, unless `isForced`. */
async function writeFile(
  file: string,
  text: AsyncIterable<Buffer>,
  { source, signal, isForced = false }: BackupOptions,
): Promise<number> {
  const temporary = toPartPath(file)
  const handle = await open(temporary, 'wx', 0o600).catch((error: unknown) => {
    throw explainFileError(error, dirname(file))
  })
  try {
    makePrivate(handle.fd, findOwner(file, source.dataDir))
    removeAbandonedParts(file, (await handle.stat()).mtimeMs)
    await pipeline(
      Readable.from(text),
      createGzip({ level: GZIP_LEVEL }),
      async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) await handle.writeFile(chunk)
      },
      { signal },
    )
    await handle.sync()
    await handle.close()
    if (isForced) await rename(temporary, file)
    else await placeNew(temporary, file)
    syncFolder(dirname(file))
    return (await stat(file)).size
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(temporary, { force: true })
    throw explainFileError(error, file)
  }
}

/** Renames a file. Throws if `file` exists. */
async function placeNew(temporary: string, file: string): Promise<void> {
  try {
    // Unlike a rename, a link fails if the file exists.
    await link(temporary, file)
  } catch (error) {
    // Some file systems have no links.
    if (existsSync(file)) {
      throw new Error(`${file} exists. Choose another name, or replace it with --force.`, {
        cause: error,
      })
    }
    return rename(temporary, file)
  }
  await rm(temporary)
}

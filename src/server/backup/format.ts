import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { explainSystemError } from '../../base/system-error.ts'

// The format of a backup: gzip of UTF-8 lines. Every line except rows is a JSON object.
// 1. The header.
// 2. For each table: its header, its rows in the text format of COPY, and a line `\.`.
// 3. The number of rows of each table.
// 4. The MAC of all lines before it.

export const FORMAT = 1
/** The line after the last row of a table. */
export const END_OF_ROWS = '\\.\n'
/** The limit for a line. No row is longer. */
const MAX_LINE_BYTES = 64 * 1024 * 1024

/** The fields of the header that every version of the format has. */
const AnyHeader = Type.Object({
  tidings: Type.Literal('backup'),
  format: Type.Integer(),
  version: Type.String(),
})

export const BackupHeader = Type.Object({
  ...AnyHeader.properties,
  createdAt: Type.String(),
  /** The names of the migrations that made its schema. */
  migrations: Type.Array(Type.String()),
  /** Parameters of scrypt. They are used before the MAC is checked, hence the limit of 256 MB. */
  scrypt: Type.Object({
    n: Type.Union([15, 16, 17, 18].map(bits => Type.Literal(2 ** bits))),
    r: Type.Integer({ minimum: 1, maximum: 8 }),
    p: Type.Integer({ minimum: 1, maximum: 4 }),
    salt: Type.String({ minLength: 20, maxLength: 100 }),
  }),
  /** An empty text, encrypted with the derived key. It detects a wrong passphrase. */
  check: Type.String(),
})
export type BackupHeader = Static<typeof BackupHeader>

export const TableHeader = Type.Object({ table: Type.String(), columns: Type.Array(Type.String()) })
export const RowCounts = Type.Object({ rows: Type.Record(Type.String(), Type.Integer()) })
export const Mac = Type.Object({ mac: Type.String() })

/** The file starts as a backup, but is incomplete or changed. */
export class DamagedBackupError extends Error {
  override readonly name = 'DamagedBackupError'

  constructor() {
    super(
      'The backup is damaged or incomplete. Nothing was restored. Use another copy of it, or an older backup.',
    )
  }
}

/** The file does not start as a backup. */
class NotABackupError extends Error {
  override readonly name = 'NotABackupError'

  constructor() {
    super('This file is not a Tidings backup. Nothing was restored.')
  }
}

/** Parses the first line. Throws when this program cannot restore the backup. */
export function parseHeader(line: string): BackupHeader {
  const header = parseJson(line)
  if (!Value.Check(AnyHeader, header)) throw new NotABackupError()
  if (header.format > FORMAT) {
    throw new Error(
      `The backup was made by a newer Tidings. Restore it with version ${header.version}.`,
    )
  }
  if (!Value.Check(BackupHeader, header)) throw new DamagedBackupError()
  return header
}

/** Parses a line by `schema`. Throws a `DamagedBackupError` when it does not match. */
export function parseLine<Schema extends typeof TableHeader | typeof RowCounts | typeof Mac>(
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

/**
 * Reads a backup once, from start to end. Every method throws a `DamagedBackupError` for an
 * incomplete backup.
 */
export interface BackupReader {
  /** Reads the next line. Returns it without the line feed. */
  line(): Promise<string>
  /** Sets the key of the MAC. Call it once, after reading the header. */
  setMacKey(key: Buffer): void
  /** Yields the rows of a table, in blocks of complete lines. */
  rows(): AsyncGenerator<Buffer>
  /**
   * Reads the last line. Throws unless its MAC covers everything before it, and it ends the file.
   */
  end(): Promise<void>
  close(): void
}

const CHUNK_BYTES = 256 * 1024
const LINE_FEED = 0x0a
const ROWS_TERMINATOR = Buffer.from(END_OF_ROWS)

/** Opens the file. The first read throws when the file cannot be read. */
export function openBackupReader(file: string): BackupReader {
  const source = createReadStream(file)
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  pipeline(source, gunzip, () => {})
  const chunks = gunzip[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let buffered: Buffer = Buffer.alloc(0)
  let hasStarted = false
  let mac: ReturnType<typeof createHmac> | undefined
  /** The bytes read before the key of the MAC is known. */
  let unauthenticated: Buffer[] = []

  /** Reads the next chunk. Returns undefined at the end. */
  async function read(): Promise<Buffer | undefined> {
    const next = await chunks.next().catch((error: unknown) => {
      if (error instanceof Error && 'syscall' in error) throw explainFileError(error, file)
      throw isGzip(error) ? new DamagedBackupError() : new NotABackupError()
    })
    if (next.done && !hasStarted) throw new NotABackupError()
    hasStarted = true
    return next.done ? undefined : next.value
  }

  /** Reads until `find` finds a line feed in `buffered`. Returns its offset. */
  async function readUntilLine(find: () => number): Promise<number> {
    const at = find()
    if (at >= 0) return at
    // Concatenate once, because a line can span hundreds of chunks.
    const parts = [buffered]
    let bytes = buffered.length
    for (;;) {
      const next = await read()
      if (!next) throw new DamagedBackupError()
      parts.push(next)
      bytes += next.length
      if (next.includes(LINE_FEED)) break
      if (bytes > MAX_LINE_BYTES) throw new DamagedBackupError()
    }
    buffered = Buffer.concat(parts)
    return find()
  }

  function take(bytes: number): Buffer {
    const taken = buffered.subarray(0, bytes)
    buffered = buffered.subarray(bytes)
    if (mac) mac.update(taken)
    else unauthenticated.push(taken)
    return taken
  }

  async function line(): Promise<string> {
    const at = await readUntilLine(() => buffered.indexOf(LINE_FEED))
    return take(at + 1)
      .subarray(0, -1)
      .toString('utf8')
  }

  return {
    line,
    async *rows() {
      for (;;) {
        const last = await readUntilLine(() => buffered.lastIndexOf(LINE_FEED))
        const end = findEnd(buffered.subarray(0, last + 1))
        const block = take(end ?? last + 1)
        if (block.length > 0) yield block
        if (end === undefined) continue
        take(ROWS_TERMINATOR.length)
        return
      }
    },
    setMacKey(key) {
      mac = createHmac('sha256', key)
      for (const taken of unauthenticated) mac.update(taken)
      unauthenticated = []
    },
    async end() {
      const expected = mac?.digest() ?? Buffer.alloc(0)
      mac = undefined
      const given = Buffer.from(parseLine(Mac, await line()).mac, 'base64url')
      const isSame = given.length === expected.length && timingSafeEqual(given, expected)
      if (!isSame || buffered.length > 0 || (await read())) throw new DamagedBackupError()
    },
    close: () => void source.destroy(),
  }
}

/** Returns the offset of the line that ends a table's rows. Undefined when it is not there yet. */
function findEnd(lines: Buffer): number | undefined {
  if (lines.subarray(0, ROWS_TERMINATOR.length).equals(ROWS_TERMINATOR)) return 0
  const before = lines.indexOf(`\n${END_OF_ROWS}`)
  return before < 0 ? undefined : before + 1
}

/** Returns true if the error is about a damaged gzip file, and false if the file is not gzip. */
function isGzip(error: unknown): boolean {
  return !(error instanceof Error && error.message.includes('header check'))
}

/** Returns an error that explains why a file of a backup cannot be used. Returns others as is. */
export function explainFileError(error: unknown, file: string): unknown {
  const text = explainSystemError(error, file)
  return text === undefined ? error : new Error(text, { cause: error })
}

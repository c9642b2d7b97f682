import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

// A backup is gzip of lines: a head, then for each table its own head and its rows in the text format of COPY up to a
// line `\.`, then the number of rows of each table, then the seal of all that. Each but the rows is a JSON object.

export const FORMAT = 1
/** After the last row of a table. */
export const END_OF_ROWS = '\\.\n'
/** More than a row can have. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024

/** Any head, of whatever format: what every later one keeps. */
const AnyHead = Type.Object({
  tidings: Type.Literal('backup'),
  format: Type.Integer(),
  version: Type.String(),
})

export const Head = Type.Object({
  ...AnyHead.properties,
  createdAt: Type.String(),
  /** Of the schema, by name. */
  migrations: Type.Array(Type.String()),
  /** How the passphrase becomes a key: with 256 MB at most, because it is made before anything can be trusted. */
  scrypt: Type.Object({
    n: Type.Union([15, 16, 17, 18].map(bits => Type.Literal(2 ** bits))),
    r: Type.Integer({ minimum: 1, maximum: 8 }),
    p: Type.Integer({ minimum: 1, maximum: 4 }),
    salt: Type.String({ minLength: 20, maxLength: 100 }),
  }),
  /** Sealed with that key. */
  check: Type.String(),
})
export type Head = Static<typeof Head>

export const TableHead = Type.Object({ table: Type.String(), columns: Type.Array(Type.String()) })
export const RowCounts = Type.Object({ rows: Type.Record(Type.String(), Type.Integer()) })
export const Seal = Type.Object({ seal: Type.String() })

/** What began as a backup, and does not go on as one. */
export class Damaged extends Error {
  override readonly name = 'Damaged'

  constructor() {
    super(
      'The backup is damaged, or was cut short: take another copy of it, or an older one. Nothing was restored.',
    )
  }
}

/** Nothing that begins as a backup does. */
export class NoBackup extends Error {
  override readonly name = 'NoBackup'

  constructor() {
    super('This file is no backup of Tidings. Nothing was restored.')
  }
}

/** The head in the first line. Throws with a sentence for people for what this program cannot restore. */
export function parseHead(line: string): Head {
  const head = parseJson(line)
  if (!Value.Check(AnyHead, head)) throw new NoBackup()
  if (head.format > FORMAT) {
    throw new Error(
      `The backup was made by a newer Tidings, ${head.version}: restore it with that version.`,
    )
  }
  if (!Value.Check(Head, head)) throw new Damaged()
  return head
}

/** A line as `schema` has it; throws a `Damaged` for any other. */
export function parseLine<Schema extends typeof TableHead | typeof RowCounts | typeof Seal>(
  schema: Schema,
  line: string,
): Static<Schema> {
  const value = parseJson(line)
  if (!Value.Check(schema, value)) throw new Damaged()
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

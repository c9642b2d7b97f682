import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Tx } from './sql.ts'

/** Connection settings that fix how COPY writes and reads rows, whatever the database's own settings are. */
export const COPY_SETTINGS = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
  // However long it takes. A disk that is slow to write holds up the connection, and that is no dead client.
  statement_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  tcp_user_timeout: 0,
}
/** Rows are passed on in blocks of this size. */
const BLOCK_BYTES = 64 * 1024

/** `name (column, …)` as COPY wants it. */
export function toCopyTarget(name: string, columns: readonly string[]): string {
  return `${quoteIdentifier(name)} (${columns.map(quoteIdentifier).join(', ')})`
}

export function quoteIdentifier(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/** The rows of a `copy … to stdout`, each a line of COPY's text format with its line feed; they are read as they are taken. */
export async function* copyOut(tx: Tx, text: string): AsyncGenerator<Buffer> {
  const stream = await tx.unsafe(text).readable()
  // Without an encoding, streams give nothing but buffers.
  yield* stream as AsyncIterable<Buffer>
  // postgres.js stops reading when rows pile up, and goes on when some are taken: but not where the last ones did, and
  // then the connection would hear nothing any more.
  stream._read(0)
}

/** Rows gathered into blocks; `onBlock` is told how many there were up to each. */
export async function* toBlocks(
  rows: AsyncIterable<Buffer>,
  onBlock: (rows: number) => void,
): AsyncGenerator<Buffer> {
  let block: Buffer[] = []
  let bytes = 0
  let count = 0
  for await (const row of rows) {
    block.push(row)
    bytes += row.length
    count++
    if (bytes < BLOCK_BYTES) continue
    onBlock(count)
    yield Buffer.concat(block)
    block = []
    bytes = 0
  }
  onBlock(count)
  if (bytes > 0) yield Buffer.concat(block)
}

/** Feeds a `copy … from stdin`; resolves when the database has taken all of `rows`, and rejects with what it says. */
export async function copyIn(tx: Tx, text: string, rows: AsyncIterable<Buffer>): Promise<void> {
  const query = tx.unsafe(text)
  const refused = rejectWithQuery(query)
  const writable = await query.writable()
  await Promise.race([pipeline(Readable.from(rows), writable), refused])
}

/**
 * Rejects with the error of a query that has been resolved before: postgres.js resolves a COPY with its stream, and has
 * nobody to tell when the database refuses the rows after the last one was sent.
 */
function rejectWithQuery(query: object): Promise<never> {
  // A property of every query of the driver.
  const settles = query as { reject(error: unknown): void }
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const before = settles.reject
  settles.reject = error => {
    before(error)
    reject(error)
  }
  return promise
}

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Sql, Tx } from './sql.ts'

/** Connection settings for COPY. They override the database's own text formats and time-outs. */
export const COPY_SETTINGS = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
  // No time-outs: a slow disk stalls the connection, which must not look like a dead client.
  statement_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  tcp_user_timeout: 0,
}
/** The minimum size of a block of rows. */
const BLOCK_BYTES = 64 * 1024

/** Returns `"name" ("column", …)` for a COPY statement. */
export function toCopyTarget(name: string, columns: readonly string[]): string {
  return `${quoteIdentifier(name)} (${columns.map(quoteIdentifier).join(', ')})`
}

export function quoteIdentifier(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/**
 * Runs `work` in a read-only transaction on one snapshot. Rejects at once when `work` fails,
 * without a rollback: an aborted COPY leaves the connection unusable. End `sql` with a timeout of 0
 * then.
 */
export function readSnapshot<Result>(sql: Sql, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  const failed = Promise.withResolvers<never>()
  const done = sql.begin('isolation level repeatable read read only', tx => {
    const result = work(tx)
    result.catch(failed.reject)
    return result
  })
  return Promise.race([done as Promise<Result>, failed.promise])
}

/**
 * Yields the rows of a `copy … to stdout` as the caller consumes them. Each row is a line of COPY's
 * text format, with its line feed.
 */
export async function* copyOut(tx: Tx, text: string): AsyncGenerator<Buffer> {
  const query = tx.unsafe(text)
  ignoreStreamErrors(query)
  const stream = await query.readable()
  // Streams without an encoding yield buffers only.
  yield* stream as AsyncIterable<Buffer>
  // postgres.js pauses the connection when rows pile up. If the last rows did, it never resumes,
  // and the connection would hang.
  stream._read(0)
}

/**
 * Keeps an error that comes before the stream is read from ending the process. The stream rejects
 * its reader with it.
 */
function ignoreStreamErrors(query: object): void {
  const settleable = query as { resolve(result: unknown): void }
  const before = settleable.resolve
  settleable.resolve = result => {
    if (result instanceof Readable) result.on('error', () => {})
    before(result)
  }
}

/** Joins rows into blocks. Calls `onBlock` with the number of rows so far. */
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

/**
 * Sends `rows` to a `copy … from stdin`. Resolves when the database has accepted all of them.
 * Rejects with the database's error.
 */
export async function copyIn(tx: Tx, text: string, rows: AsyncIterable<Buffer>): Promise<void> {
  const query = tx.unsafe(text)
  const refused = rejectWithQuery(query)
  const writable = await query.writable()
  await Promise.race([pipeline(Readable.from(rows), writable), refused])
}

/**
 * Rejects with the error of a query that has already resolved. postgres.js resolves a COPY with its
 * stream, and drops an error that the database reports after the last row.
 */
function rejectWithQuery(query: object): Promise<never> {
  // Every query of postgres.js has this method.
  const settleable = query as { reject(error: unknown): void }
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const before = settleable.reject
  settleable.reject = error => {
    before(error)
    reject(error)
  }
  return promise
}

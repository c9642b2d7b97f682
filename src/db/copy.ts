import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Tx } from './sql.ts'

/** The rows of a `copy … to stdout`, each a line of COPY's text format with its line feed; they are read as they are taken. */
export async function* copyOut(tx: Tx, text: string): AsyncGenerator<Buffer> {
  const stream = await tx.unsafe(text).readable()
  // Without an encoding, streams give nothing but buffers.
  yield* stream as AsyncIterable<Buffer>
  // postgres.js stops reading when rows pile up, and goes on when some are taken: but not where the last ones did, and
  // then the connection would hear nothing any more.
  stream._read(0)
}

/** Feeds a `copy … from stdin`; resolves when the database has taken all of `rows`, and rejects with what it says. */
export async function copyIn(tx: Tx, text: string, rows: AsyncIterable<Buffer>): Promise<void> {
  const query = tx.unsafe(text)
  const refused = untilRejected(query)
  const writable = await query.writable()
  await Promise.race([pipeline(Readable.from(rows), writable), refused])
}

/**
 * Rejects with the error of a query that has been resolved before: postgres.js resolves a COPY with its stream, and has
 * nobody to tell when the database refuses the rows after the last one was sent.
 */
function untilRejected(query: object): Promise<never> {
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

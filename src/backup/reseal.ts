import type { SealedTable } from '../secrets/rotation.ts'
import type { Secrets } from '../secrets/secrets.ts'

/** Which key opens, and which seals. */
export interface Turn {
  from: Secrets
  to: Secrets
}

/**
 * What seals the sealed columns of a row of COPY's text format anew. Sealed texts and ids have no characters that COPY
 * would escape.
 */
export function createResealer(
  { table, columns: sealed }: SealedTable,
  columns: readonly string[],
  { from, to }: Turn,
): (row: string) => string {
  const idAt = columns.indexOf('id')
  const places = sealed.map(column => ({ column, at: columns.indexOf(column) }))
  return row => {
    const fields = row.split('\t')
    for (const { column, at } of places) {
      const text = fields[at]
      if (text === undefined || text === '\\N') continue
      const place = { table, column, rowId: fields[idAt] ?? '' }
      fields[at] = to.seal(from.open(text, place), place)
    }
    return fields.join('\t')
  }
}

/** The same for whole lines, as they come. */
export async function* resealRows(
  blocks: AsyncIterable<Buffer>,
  reseal: (row: string) => string,
): AsyncGenerator<Buffer> {
  for await (const block of blocks) {
    const rows = block.toString('utf8').split('\n').slice(0, -1)
    yield Buffer.from(rows.map(row => `${reseal(row)}\n`).join(''))
  }
}

import type { Queryable } from '../db/sql.ts'

/** Seqs of a log, both ends included. */
export interface Range {
  first: bigint
  last: bigint
}

export type Direction = 'older' | 'newer'

export interface RangesOptions {
  afterMs: number | null
  beforeMs: number | null
  isEnded: boolean
}

/** Of a bigint. */
const MAX_SEQ = 2n ** 63n - 1n

/** Seqs of one stretch of a log, as sql/0007_reading.sql cuts it. */
const STRETCH_BITS = 12n

/**
 * Where in a log the events between two moments can be, in its order; all of it without moments. What asks for its end
 * costs a look-up: without `isEnded` a whole log goes on to the last seq that there can be.
 */
export async function listRanges(
  sql: Queryable,
  projectId: string,
  { afterMs, beforeMs, isEnded }: RangesOptions,
): Promise<Range[]> {
  if (afterMs === null && beforeMs === null) {
    if (!isEnded) return [{ first: 1n, last: MAX_SEQ }]
    const [row] = await sql<{ last: string }[]>`
      select last_seq as last from event_logs where project_id = ${projectId}
    `
    return row && row.last !== '0' ? [{ first: 1n, last: BigInt(row.last) }] : []
  }
  const after = afterMs === null ? null : afterMs / 1000
  const before = beforeMs === null ? null : beforeMs / 1000
  const rows = await sql<{ first: string; last: string }[]>`
    select min(s.stretch) as first, max(s.stretch) as last
    from (
      select stretch, stretch - row_number() over (order by stretch) as island
      from event_stretches
      where project_id = ${projectId}
        and last_at > coalesce(to_timestamp(${after}::float8), '-infinity')
        and first_at < coalesce(to_timestamp(${before}::float8), 'infinity')
    ) s
    group by s.island
    order by 1
  `
  return rows.map(({ first, last }) => ({
    first: BigInt(first) << STRETCH_BITS || 1n,
    last: ((BigInt(last) + 1n) << STRETCH_BITS) - 1n,
  }))
}

/** The stretch in which a seq is, and its first seq. */
export function toStretch(seq: bigint): { stretch: bigint; first: bigint } {
  const stretch = seq >> STRETCH_BITS
  return { stretch, first: stretch << STRETCH_BITS }
}

/** What of the ranges is beyond `seq` in a direction, in the order that they came in. */
export function clip(ranges: Range[], direction: Direction, seq: bigint): Range[] {
  return ranges.flatMap(({ first, last }) => {
    const clipped =
      direction === 'older'
        ? { first, last: seq <= last ? seq - 1n : last }
        : { first: seq >= first ? seq + 1n : first, last }
    return clipped.first <= clipped.last ? [clipped] : []
  })
}

import type { Queryable } from '../../database/sql.ts'
import { parseCursor, toCursor } from '../../http/paging.ts'

/** A range of seqs, both ends included. */
export interface SeqRange {
  first: bigint
  last: bigint
}

export type Direction = 'older' | 'newer'

/** The position in a log from which a list continues: after `seq`, in a direction. */
export interface LogPosition {
  direction: Direction
  seq: bigint
}

/** Encodes a position as an opaque cursor. */
export function toListCursor({ direction, seq }: LogPosition): string {
  return toCursor([`${direction === 'older' ? '<' : '>'}${seq}`])
}

/** Decodes a cursor. Returns undefined without one. Throws `InvalidRequest` for any other text. */
export function parseListCursor(cursor: string | undefined): LogPosition | undefined {
  const [text] = parseCursor(cursor, [/^[<>](0|[1-9]\d{0,17})$/]) ?? []
  if (text === undefined) return undefined
  return { direction: text.startsWith('<') ? 'older' : 'newer', seq: BigInt(text.slice(1)) }
}

export interface SeqRangeOptions {
  afterMs: number | null
  beforeMs: number | null
  endsAtHead: boolean
}

/** The largest bigint of Postgres. */
export const MAX_SEQ = 2n ** 63n - 1n

/** A segment of a log has 2^12 seqs, as in event_segments. */
const SEGMENT_BITS = 12n

/**
 * Lists the parts of a log that can contain events between two times, in the order of seq. Without
 * times that is the whole log. With `endsAtHead` it begins at the first event that is left and ends
 * at the last one, which costs a query. Otherwise it ends at the largest possible seq.
 */
export async function listSeqRanges(
  sql: Queryable,
  projectId: string,
  { afterMs, beforeMs, endsAtHead }: SeqRangeOptions,
): Promise<SeqRange[]> {
  if (afterMs === null && beforeMs === null) {
    if (!endsAtHead) return [{ first: 1n, last: MAX_SEQ }]
    const [row] = await sql<{ first: string | null; last: string }[]>`
      select first_seq_of(${projectId}) as first, l.last_seq as last
      from log_of(${projectId}) l
    `
    return typeof row?.first === 'string'
      ? [{ first: BigInt(row.first), last: BigInt(row.last) }]
      : []
  }
  const after = afterMs === null ? null : afterMs / 1000
  const before = beforeMs === null ? null : beforeMs / 1000
  const rows = await sql<{ first: string; last: string }[]>`
    select min(s.segment) as first, max(s.segment) as last
    from (
      select segment, segment - row_number() over (order by segment) as island
      from event_segments
      where project_id = ${projectId}
        and last_at > coalesce(to_timestamp(${after}::float8), '-infinity')
        and first_at < coalesce(to_timestamp(${before}::float8), 'infinity')
    ) s
    group by s.island
    order by 1
  `
  return rows.map(({ first, last }) => ({
    first: BigInt(first) << SEGMENT_BITS || 1n,
    last: ((BigInt(last) + 1n) << SEGMENT_BITS) - 1n,
  }))
}

/**
 * Returns the seq from which on all events of a log were accepted at `date` or later. Without such
 * events it is after the end of the log. Costs a query for each bit of the length of the log.
 */
export async function findFirstSeqSince(
  sql: Queryable,
  projectId: string,
  date: Date,
): Promise<bigint> {
  const [log] = await sql<{ last: string }[]>`
    select last_seq as last from log_of(${projectId})
  `
  // Events before `low` were accepted before `date`, and those from `high` on were not.
  let [low, high] = [1n, BigInt(log?.last ?? 0) + 1n]
  while (low < high) {
    const middle = (low + high) / 2n
    const [found] = await sql<{ is_before: boolean }[]>`
      select created_at < ${date} as is_before from first_event_from(${projectId}, ${String(middle)})
    `
    if (found?.is_before) low = middle + 1n
    else high = middle
  }
  return low
}

/** Returns the segment that contains a seq, and the segment's first seq. */
export function toSegment(seq: bigint): { segment: bigint; first: bigint } {
  const segment = seq >> SEGMENT_BITS
  return { segment, first: segment << SEGMENT_BITS }
}

/** Returns the parts of `ranges` that come after `seq` in a direction, in the same order. */
export function clipRanges(ranges: SeqRange[], direction: Direction, seq: bigint): SeqRange[] {
  return ranges.flatMap(({ first, last }) => {
    const clipped =
      direction === 'older'
        ? { first, last: seq <= last ? seq - 1n : last }
        : { first: seq >= first ? seq + 1n : first, last }
    return clipped.first <= clipped.last ? [clipped] : []
  })
}

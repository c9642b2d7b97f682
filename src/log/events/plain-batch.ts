import { parseId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import { toSlug } from '../channels/name.ts'
import { splitEventTexts, type EventTexts } from './event-json.ts'
import { hasOnly, type SearchFilters } from './search-filters.ts'
import { MAX_SEQ, type Direction } from './seq-ranges.ts'

/** A batch of a log, from the event after `from` in a direction, or from that end of the log. */
export interface PlainBatch {
  direction: Direction
  from: bigint | undefined
  /** The largest number of events to read. */
  size: number
  /** How many matches end the batch early. */
  wanted: number
  /** The bytes of texts that end the batch early. */
  maxBytes: number
}

/**
 * Returns true for filters of at most one channel, sources and tags. The first page of such a list
 * takes one statement.
 */
export function isPlain(filters: SearchFilters): boolean {
  const { channels, sources, tags } = filters
  return (
    hasOnly(filters, ['channels', 'sources', 'tags']) &&
    channels.is.length <= 1 &&
    [channels, sources, tags].every(({ not }) => not.length === 0) &&
    filters.after === null &&
    filters.before === null
  )
}

/**
 * Reads a batch with plain filters. Returns the texts of its matches, in its direction. `stopped`
 * is the last seq that it read, or undefined at the end of the log. With `wanted` matches or
 * `maxBytes` of texts, it has no meaning. Returns undefined if the channel has been renamed to this
 * name or does not exist.
 */
export async function readPlainBatch(
  sql: Queryable,
  projectId: string,
  { channels, sources, tags }: SearchFilters,
  { direction, from, size, wanted, maxBytes }: PlainBatch,
): Promise<(EventTexts & { stopped: bigint | undefined }) | undefined> {
  const isNewestFirst = direction === 'older'
  const start = from ?? (isNewestFirst ? MAX_SEQ : 0n)
  const [channel] = channels.is
  const list = (values: string[]) => (values.length === 0 ? null : toArray(values))
  const [row] = await sql<
    [{ candidates: number | null; last_seq: string | null; texts: string | null }]
  >`
    select l.candidates, l.last_seq, l.texts
    from list_events(
      project => ${projectId},
      by_channel_id => ${channel === undefined ? null : (parseId('chn', channel) ?? null)},
      by_channel_slug => ${channel === undefined ? null : toSlug(channel)},
      sources => ${list(sources.is)}::text[],
      tags => ${list(tags.is)}::text[],
      start_seq => ${String(start)},
      is_newest_first => ${isNewestFirst},
      batch => ${size},
      page => ${wanted},
      max_bytes => ${maxBytes}
    ) l
  `
  if (row.candidates === 0) return undefined
  const isCut = row.candidates === size && row.last_seq !== null
  return {
    ...splitEventTexts(row.texts),
    stopped: isCut ? BigInt(row.last_seq ?? 0) : undefined,
  }
}

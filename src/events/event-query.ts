import { parseTimestamp } from './moment.ts'
import type { EventQuery } from './schema.ts'
import { noFilters, type Filters } from './search.ts'
import { toWords } from './text-query.ts'

/** The filters of v1's list. */
export function toFilters(query: EventQuery): Filters {
  const { channel, tag, userId, source, text, from, to } = query
  const only = <Value>(value: Value | undefined) => ({
    is: value === undefined ? [] : [value],
    not: [],
  })
  return {
    ...noFilters(),
    channels: only(channel),
    tags: only(tag),
    users: only(userId),
    sources: only(source),
    words: { is: text === undefined ? [] : toWords(text), not: [] },
    after: from === undefined ? null : (parseTimestamp(from) ?? null),
    // `to` is inclusive, and moments have whole milliseconds.
    before: to === undefined ? null : (parseTimestamp(to) ?? 0) + 1,
  }
}

import { Type, type Static } from '@sinclair/typebox'
import { PageOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Timestamp } from '../../http/schema-parts.ts'
import { InvalidRequest } from '../../http/validation.ts'
import type { Level } from '../channels/level.ts'
import type { State } from './state.ts'
import { parseIsoTimestamp } from './timestamp.ts'
import { Event, IsoTimestamp, ThreadChoice, type EventQuery } from './schema.ts'
import { explainIssue } from './search-explanation.ts'
import { noFilters, toExactUser, type SearchFilters } from './search-filters.ts'
import { parseSearch } from './search-query.ts'
import { hasNothingToFind, MAX_WORDS, NOTHING_TO_FIND, splitWords } from '../../base/text-search.ts'

/** A search in the language of the search box. `toSearchFilters` parses it. */
export const SearchText = Text({
  maxLength: 500,
  description: 'A search, like `channel:payments -tag:test (refund OR "charged back") after:2h`.',
})

/** The query of the dashboard's list of events, and of its histogram. */
export const SearchQuery = Type.Object({
  q: Type.Optional(SearchText),
  from: Type.Optional(IsoTimestamp('Only events at this time or later.')),
  to: Type.Optional(IsoTimestamp('Only events before this time.')),
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  ...ThreadChoice.properties,
  ...PageQuery.properties,
})
export type SearchQuery = Static<typeof SearchQuery>

export const EventPage = PageOf(
  Type.Object(
    {
      ...Event.properties,
      isUnexamined: Type.Optional(
        Type.Literal(true, {
          description: 'The event is too large for this search, and was not compared with it.',
        }),
      ),
    },
    closed,
  ),
)
export type EventPage = Static<typeof EventPage>

const Neighbour = Type.Union([
  Type.Object({ id: Type.String(), seq: Type.Integer() }, closed),
  Type.Null(),
])

/** The events before and after an event in the log; null at the ends of the log. */
export const Neighbours = Type.Object({ older: Neighbour, newer: Neighbour }, closed)
export type Neighbours = Static<typeof Neighbours>

/** The term of a search that needs a value, and what is typed of it. */
export const SuggestionQuery = Type.Object({
  field: Type.Optional(OneOf(['channel', 'tag', 'user', 'source', 'meta'], 'Channels by default.')),
  text: Type.Optional(
    Text({
      maxLength: 255,
      description: 'The beginning of the value. With `meta`, a path, or a path, `=` and a value.',
    }),
  ),
})
export type SuggestionQuery = Static<typeof SuggestionQuery>

/** A value for a term of a search. */
export const Suggestion = Type.Object(
  {
    value: Type.String({ description: 'With `meta`, a path that ends with `=`, or with a value.' }),
    label: Type.Union([Type.String(), Type.Null()], {
      description:
        'The name or e-mail address of a user, or the new name of a channel, if it is another one.',
    }),
  },
  closed,
)
export type Suggestion = Static<typeof Suggestion>
export const Suggestions = Type.Object(
  { items: Type.Array(Suggestion, { maxItems: 10 }) },
  { ...closed, $id: 'Suggestions' },
)
export type Suggestions = Static<typeof Suggestions>

const Counts = Type.Array(Type.Integer({ minimum: 0 }))

/** Counts of events in up to 60 equal time buckets. The first bucket begins at `from`. */
export const Histogram = Type.Object(
  {
    from: Timestamp,
    to: Type.String({ format: 'date-time', description: 'The end of the last bucket.' }),
    stepMs: Type.Integer({ minimum: 1_000, description: 'The length of a bucket.' }),
    total: Type.Integer({ minimum: 0 }),
    channels: Type.Array(
      Type.Object({ id: Type.String(), name: Type.String(), counts: Counts }, closed),
      { description: 'The channels with the most events, in descending order.' },
    ),
    others: Type.Array(Type.Integer({ minimum: 0 }), {
      description: 'The counts of all other channels together.',
    }),
    isPartial: Type.Boolean({
      description: 'True when some events of the range were not counted.',
    }),
    completeSince: Type.Union([Timestamp, Type.Null()], {
      description: 'Counts are complete from this time on. Null when all are complete.',
    }),
  },
  { $id: 'Histogram', additionalProperties: false },
)
export type Histogram = Static<typeof Histogram>

/**
 * The filters of a search, narrowed to its range. Throws `InvalidRequest` with the path of each bad
 * term.
 */
export function toSearchFilters({
  q = '',
  from,
  to,
}: Pick<SearchQuery, 'q' | 'from' | 'to'>): SearchFilters {
  const { filters, issues } = parseSearch(q)
  if (issues.length > 0) {
    throw new InvalidRequest(
      issues.map(issue => ({
        code: issue.code,
        path: ['q', ...issue.path],
        message: explainIssue(q, issue),
      })),
    )
  }
  const after = parseBound(from)
  const before = parseBound(to)
  return {
    ...filters,
    after: filters.after === null ? after : Math.max(filters.after, after ?? -Infinity),
    before: filters.before === null ? before : Math.min(filters.before, before ?? Infinity),
  }
}

/** Filters without excluded values, as lists of /v1 and subscriptions of the feed have them. */
interface PlainFilters {
  channels?: string[]
  tags?: string[]
  userId?: string | undefined
  source?: string | undefined
  level?: Level | undefined
  state?: State | undefined
  thread?: string | undefined
  text?: string | undefined
}

/**
 * Converts filters that stand at a path of a request to those of a search. Throws `InvalidRequest`
 * for too many words, and for a word without letters, digits and symbols.
 */
export function fromPlainFilters(
  { channels = [], tags = [], userId, source, level, state, thread, text }: PlainFilters,
  path: string[] = [],
): SearchFilters {
  const only = <Value>(values: Value[]) => ({ is: values, not: [] })
  const words = text === undefined ? [] : splitWords(text)
  if (words.length > MAX_WORDS) {
    const message = `Must have at most ${MAX_WORDS} words`
    throw new InvalidRequest([{ code: 'too_many', path: [...path, 'text'], message }])
  }
  if (words.some(hasNothingToFind)) {
    const message = NOTHING_TO_FIND
    throw new InvalidRequest([{ code: 'invalid_value', path: [...path, 'text'], message }])
  }
  return {
    ...noFilters(),
    channels: only(channels),
    tags: only(tags),
    users: only(userId === undefined ? [] : [toExactUser(userId)]),
    sources: only(source === undefined ? [] : [source]),
    levels: only(level === undefined ? [] : [level]),
    states: only(state === undefined ? [] : [state]),
    threads: only(thread === undefined ? [] : [thread]),
    words: only(words),
  }
}

/** Converts the query of `GET /v1/events` to filters. Throws like `fromPlainFilters`. */
export function toListFilters({ channel, tag, from, to, ...rest }: EventQuery): SearchFilters {
  const last = parseBound(to)
  return {
    ...fromPlainFilters({
      ...rest,
      channels: channel === undefined ? [] : [channel],
      tags: tag === undefined ? [] : [tag],
    }),
    after: parseBound(from),
    // `to` is inclusive here, and timestamps have whole milliseconds.
    before: last === null ? null : last + 1,
  }
}

/** Returns milliseconds since 1970; null for no bound. The schema has validated the text. */
function parseBound(text: string | undefined): number | null {
  return text === undefined ? null : (parseIsoTimestamp(text) ?? null)
}

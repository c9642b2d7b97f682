import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { Histogram, SearchQuery, SearchText } from '../events/search-schema.ts'

export const MAX_CARDS = 12
const MAX_HOURS = 90 * 24

/** A chart over time, one number, the most frequent values as bars, or many values as a table. */
const KINDS = ['series', 'number', 'top', 'table'] as const
/** The fields whose values a card can count. */
const GROUPS = ['channel', 'tag', 'user', 'source', 'metadata'] as const
export type CardGroup = (typeof GROUPS)[number]

const Kind = OneOf(KINDS, 'How the matches are shown.')
const GroupBy = OneOf(GROUPS, 'The field whose values are counted. `top` and `table` require it.')
const MetadataPath = TrimmedText({
  maxLength: 200,
  description: 'The name of the value in the metadata, such as `order.plan`.',
})
const Hours = Type.Integer({
  minimum: 1,
  maximum: MAX_HOURS,
  description: 'The period that ends now, in hours.',
})
const Title = TrimmedText({ maxLength: 100 })

/** A card of the insights. */
export const Card = Type.Object(
  {
    id: Type.String(),
    kind: Kind,
    groupBy: Nullable(GroupBy),
    metadataPath: Nullable(Type.String()),
    q: Type.String({ description: 'The search that events match; empty for all events.' }),
    hours: Hours,
    title: Nullable(Type.String(), 'Null for a title made from the other fields.'),
    createdAt: Timestamp,
  },
  { $id: 'Card', additionalProperties: false },
)
export type Card = Static<typeof Card>

/** The board of a project, in its order. */
export const Board = Type.Object({ cards: Type.Array(Card, { maxItems: MAX_CARDS }) }, closed)
export type Board = Static<typeof Board>

/** A card to add at the end of the board. */
export const NewCard = Type.Object(
  {
    kind: Kind,
    groupBy: Type.Optional(Nullable(GroupBy)),
    metadataPath: Type.Optional(Nullable(MetadataPath)),
    q: Type.Optional(SearchText),
    hours: Type.Optional(Hours),
    title: Type.Optional(Nullable(Title)),
  },
  { examples: [{ kind: 'top', groupBy: 'tag', q: 'channel:payments', hours: 168 }] },
)
export type NewCard = Static<typeof NewCard>

/** Changes to a card. Absent fields stay as they are. */
export const CardEdit = Type.Object(
  { ...NewCard.properties, kind: Type.Optional(Kind) },
  { examples: [{ hours: 24, title: 'Payments' }] },
)
export type CardEdit = Static<typeof CardEdit>

/** All cards of a board in their new order. */
export const CardOrder = Type.Object(
  { cardIds: Type.Array(Text({ maxLength: 64 }), { maxItems: MAX_CARDS }) },
  { examples: [{ cardIds: ['crd_01kadz5p6vf2w8y3m4n5q6r7s8'] }] },
)
export type CardOrder = Static<typeof CardOrder>

const Count = Type.Integer({ minimum: 0 })
const Previous = Nullable(
  Count,
  'The count in the same part of the period before; null when that was not counted.',
)

/** The present content of a card. */
export const CardResult = Type.Union([
  Type.Object({ kind: Type.Literal('series'), histogram: Histogram }, closed),
  Type.Object(
    {
      kind: Type.Literal('counts'),
      from: Timestamp,
      to: Timestamp,
      total: Count,
      previous: Previous,
      completeSince: Nullable(
        Timestamp,
        'Counts are complete from this time on. Null when the whole period was counted.',
      ),
      values: Type.Array(
        Type.Object(
          {
            value: Type.String({ description: 'The id of a channel; else the value itself.' }),
            name: Nullable(Type.String(), 'The name of a channel or a user.'),
            total: Count,
            previous: Previous,
          },
          closed,
        ),
        { description: 'The most frequent values of the counted field, in descending order.' },
      ),
      hasMore: Type.Boolean({ description: 'True if there are more values.' }),
    },
    closed,
  ),
])
export type CardResult = Static<typeof CardResult>
export type CountsResult = Extract<CardResult, { kind: 'counts' }>

/** The search whose matches are grouped, and its range. The default range is the last week. */
export const AlikeQuery = Type.Pick(SearchQuery, ['q', 'from', 'to'])

/** The titles of matches, in groups of those that differ in their numbers alone. */
export const AlikeTitles = Type.Object(
  {
    from: Timestamp,
    to: Type.String({ format: 'date-time', description: 'The end of the last bucket.' }),
    stepMs: Type.Integer({ minimum: 1_000, description: 'The length of a bucket.' }),
    total: Count,
    completeSince: Nullable(
      Timestamp,
      'Counts are complete from this time on. Null when all are complete.',
    ),
    groups: Type.Array(
      Type.Object(
        {
          shape: Type.String({
            description:
              'The title with # in place of each number. The search `alike:` with it finds the events.',
          }),
          example: Type.String({ description: 'The newest title.' }),
          channels: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }, closed), {
            maxItems: 3,
            description: 'The channels with the most of these events.',
          }),
          channelCount: Type.Integer({ minimum: 1, description: 'The number of all channels.' }),
          total: Count,
          firstAt: Timestamp,
          lastAt: Timestamp,
          counts: Type.Array(Count, { description: 'The counts of up to 30 equal time buckets.' }),
        },
        closed,
      ),
      { maxItems: 50, description: 'The largest groups, in descending order.' },
    ),
    hasMore: Type.Boolean({ description: 'True if there are more groups.' }),
  },
  closed,
)
export type AlikeTitles = Static<typeof AlikeTitles>

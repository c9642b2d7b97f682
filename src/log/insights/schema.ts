import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { Histogram, SearchText } from '../events/search-schema.ts'

export const MAX_CARDS = 12
const MAX_HOURS = 90 * 24

/** A chart over time, one number, or the most frequent values as bars. */
const KINDS = ['series', 'number', 'top'] as const
/** The fields whose values a card can count. */
const GROUPS = ['channel', 'tag', 'user', 'source', 'metadata'] as const
export type CardGroup = (typeof GROUPS)[number]

const Kind = OneOf(KINDS, 'How the matches are shown.')
const GroupBy = OneOf(GROUPS, 'The field whose values are counted. `top` requires it.')
const MetadataPath = TrimmedText({
  maxLength: 200,
  description: 'The name of the value in the metadata, such as `order.plan`.',
})
const Hours = Type.Integer({
  minimum: 1,
  maximum: MAX_HOURS,
  description: 'The number of whole hours to count, the present one included.',
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

/** The present content of a card. */
export const CardResult = Type.Union([
  Type.Object({ kind: Type.Literal('series'), histogram: Histogram }, closed),
  Type.Object(
    {
      kind: Type.Literal('counts'),
      from: Timestamp,
      to: Timestamp,
      total: Count,
      previous: Nullable(
        Count,
        'The count in the same part of the period before; null when that was not counted.',
      ),
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

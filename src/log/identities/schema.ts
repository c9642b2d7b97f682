import { Type, type Static } from '@sinclair/typebox'
import { JsonObject } from '../../http/json-object.ts'
import { Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'

const UserId = Text({
  minLength: 1,
  maxLength: 255,
  description: 'Your own id of the user, the same in every call. Case and white space count.',
  examples: ['user_123'],
})
const Alias = Text({ minLength: 1, maxLength: 255, examples: ['ada@example.com'] })

/** The body of identify. */
export const IdentifyInput = Type.Object(
  {
    user_id: UserId,
    properties: Type.Optional(
      JsonObject('Replaces all stored properties. When absent, they stay. `{}` clears them.'),
    ),
    aliases: Type.Optional(Type.Array(Alias, { maxItems: 50 })),
  },
  {
    $id: 'IdentifyInput',
    examples: [{ user_id: 'user_123', properties: { plan: 'pro' }, aliases: ['ada@example.com'] }],
  },
)
export type IdentifyInput = Static<typeof IdentifyInput>

const stored = {
  id: Type.String({ examples: ['idn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
  userId: Type.String(),
  properties: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
}

/** The response to identify. In the replay for a user who was erased since, userId is null. */
export const Identified = Type.Object(
  {
    ...stored,
    userId: Nullable(Type.String()),
    aliases: Type.Object(
      {
        created: Type.Array(Type.String()),
        failed: Type.Optional(
          Type.Array(Type.Object({ alias: Type.String(), reason: Type.String() }, closed), {
            description: 'Present only when at least one alias failed.',
          }),
        ),
      },
      closed,
    ),
    updatedAt: Timestamp,
  },
  { $id: 'Identified', additionalProperties: false },
)
export type Identified = Static<typeof Identified>

/** A user with all their aliases. */
export const User = Type.Object(
  {
    ...stored,
    aliases: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'User', additionalProperties: false },
)
export type User = Static<typeof User>

/** The result of an erasure, or its state so far. */
export const Erased = Type.Object(
  {
    userId: Type.String(),
    events: Type.Integer({ description: 'The number of events from which the user was removed.' }),
    erasedAt: Type.String({
      format: 'date-time',
      description: 'When the identity was deleted. A repeated request gets the time of the first.',
    }),
    erasedBy: Nullable(
      Type.Object({ id: Type.String(), name: Type.String() }, closed),
      'The API key that erased the user; null if a member did.',
    ),
    exportedMonths: Type.Optional(
      Type.Array(Type.String({ pattern: '^\\d{4}-\\d{2}$' }), {
        description:
          'Months whose files of `tidings export` can name the user. Erase the user there, too. Absent if there are none.',
      }),
    ),
  },
  { $id: 'Erased', additionalProperties: false },
)
export type Erased = Static<typeof Erased>

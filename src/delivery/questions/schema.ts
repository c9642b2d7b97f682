import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text } from '../../http/rules.ts'
import { Nullable, Timestamp } from '../../http/schema-parts.ts'

/** The answer to the question of an event. */
export const Answer = Type.Object(
  {
    state: OneOf(['waiting', 'answered', 'expired'], '`expired`: nobody answered in time.'),
    action: Nullable(Type.String(), 'The id of the chosen action.'),
    by: Nullable(Type.String(), 'The name of the member, or of the token.'),
    at: Nullable(Timestamp, 'When it was answered, or expired.'),
    expiresAt: Timestamp,
    receivedAt: Nullable(
      Timestamp,
      'When the program fetched the answer, or accepted the callback.',
    ),
  },
  { $id: 'Answer', additionalProperties: false },
)
export type Answer = Static<typeof Answer>

export const AnswerInput = Type.Object(
  { action: Text({ minLength: 1, maxLength: 50, description: 'The id of an action.' }) },
  { examples: [{ action: 'deploy' }] },
)

export const AnswerQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 60,
      description: 'Seconds to wait for an answer. By default, the response comes at once.',
    }),
  ),
})

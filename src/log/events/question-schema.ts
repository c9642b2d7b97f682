import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Timestamp } from '../../http/schema-parts.ts'

const ANSWERERS = ['members', 'admins', 'owners'] as const
const By = OneOf(ANSWERERS, 'Members with this role or a higher one may answer.')

const Action = Type.Object({
  id: Text({
    minLength: 1,
    maxLength: 50,
    description: 'Lower-case letters, digits, `_` and `-`.',
    examples: ['deploy'],
  }),
  label: TrimmedText({ maxLength: 40, description: 'The text of its button.' }),
})

/** The fields of a request whose event asks a question. */
export const Question = Type.Object({
  actions: Type.Optional(
    Type.Array(Action, {
      minItems: 1,
      maxItems: 4,
      description: 'The answers that members choose from. Requires `answer`.',
    }),
  ),
  answer: Type.Optional(
    Type.Object(
      {
        expiresInSeconds: Type.Integer({
          minimum: 10,
          maximum: 604_800,
          description: 'How long members can answer.',
        }),
        callbackUrl: Type.Optional(
          Text({
            minLength: 1,
            maxLength: 2_048,
            description: 'Receives the answer: https or http, at a public address.',
          }),
        ),
        by: Type.Optional(By),
      },
      { description: 'How it is answered. Requires `actions`.' },
    ),
  ),
})
export type Question = Static<typeof Question>

/** The fields of an event that asks a question. */
export const AskedQuestion = Type.Object({
  actions: Type.Optional(
    Type.Array(Type.Object({ id: Type.String(), label: Type.String() }, closed), {
      description: 'The answers that members choose from. Absent if it asks nothing.',
    }),
  ),
  answer: Type.Optional(
    Type.Object(
      {
        expiresAt: Timestamp,
        by: By,
        secret: Type.Optional(
          Type.String({
            description: 'Verifies the callback. Only in the response to the creation.',
          }),
        ),
      },
      { ...closed, description: 'How it is answered. Absent if it asks nothing.' },
    ),
  ),
})

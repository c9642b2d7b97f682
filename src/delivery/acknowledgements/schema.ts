import { Type, type Static } from '@sinclair/typebox'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'

/** The member who takes care of an alarm. */
export const Acknowledgement = Type.Object(
  {
    by: Type.String({ description: 'The name of the member, or of the token.' }),
    at: Timestamp,
    until: Nullable(Timestamp, 'When it ends, and repetition begins again. Null if it does not.'),
  },
  { $id: 'Acknowledgement', additionalProperties: false },
)
export type Acknowledgement = Static<typeof Acknowledgement>

/** The acknowledgement of a thread, or of an event without one. */
export const AcknowledgementStatus = Type.Object(
  {
    acknowledgement: Nullable(Acknowledgement, 'Null while nobody has acknowledged it.'),
    isOpen: Type.Boolean({ description: 'True if it is acknowledged, or can be.' }),
  },
  closed,
)
export type AcknowledgementStatus = Static<typeof AcknowledgementStatus>

export const AcknowledgementInput = Type.Object(
  {
    minutes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_080,
        description: 'Ends the acknowledgement after this time. Repetition then begins again.',
      }),
    ),
  },
  { examples: [{ minutes: 60 }] },
)
export type AcknowledgementInput = Static<typeof AcknowledgementInput>

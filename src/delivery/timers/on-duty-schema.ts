import { Type, type Static } from '@sinclair/typebox'
import { Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { IsoTimestamp } from '../../log/events/schema.ts'

/** The member on duty, whom stages can tell. */
export const OnDuty = Type.Object(
  {
    member: Nullable(
      Type.Object({ id: Type.String(), name: Type.String() }, closed),
      'Null while nobody is on duty.',
    ),
    until: Nullable(Timestamp),
  },
  closed,
)
export type OnDuty = Static<typeof OnDuty>

export const OnDutyInput = Type.Object(
  {
    memberId: Text({ minLength: 1, maxLength: 50, description: 'The id of a member.' }),
    until: IsoTimestamp('When it ends, at most 90 days from now.'),
  },
  { examples: [{ memberId: 'per_01kadz5p6vf2w8y3m4n5q6r7s8', until: '2026-11-23T08:00:00Z' }] },
)
export type OnDutyInput = Static<typeof OnDutyInput>

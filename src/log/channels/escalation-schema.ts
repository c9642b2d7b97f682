import { Kind, Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ROLES } from '../../access/guard/permissions.ts'
import { defineRule, issue, NO_ISSUES, OneOf } from '../../http/rules.ts'
import { closed } from '../../http/schema-parts.ts'

/** The members that a stage tells: who is on duty, a role and those above it, or ids. */
const StageTo = Type.Union([
  Type.Literal('onDuty'),
  Type.Object({ role: OneOf(ROLES) }, closed),
  Type.Object({ members: Type.Array(Type.String(), { minItems: 1, maxItems: 20 }) }, closed),
])
export type StageTo = Static<typeof StageTo>

const STAGE_TO = defineRule('StageTo', value =>
  Value.Check(StageTo, value)
    ? NO_ISSUES
    : issue('invalid_value', 'Must be "onDuty", {"role": "admin"} or {"members": [1 to 20 ids]}'),
)

const stage = {
  afterMinutes: Type.Integer({ minimum: 0, maximum: 1_440 }),
  to: Type.Unsafe<StageTo>({
    ...StageTo,
    [Kind]: STAGE_TO,
    description: 'The members to tell. A role includes those above it.',
  }),
}

/** How the members are told of the alarms of a channel. */
export const Escalation = Type.Object({
  level: Type.Optional(
    OneOf(['high', 'critical'], 'The lowest level of its alarms; `critical` by default.'),
  ),
  repeatMinutes: Type.Optional(
    Type.Integer({
      ...{ minimum: 2, maximum: 60 },
      description: 'How often a critical alarm is repeated; 5 by default.',
    }),
  ),
  stages: Type.Optional(
    Type.Array(Type.Object(stage), {
      maxItems: 3,
      description: 'In the order of their minutes. Without any, all are told.',
    }),
  ),
})
export type Escalation = Static<typeof Escalation>

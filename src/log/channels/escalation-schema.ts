import { Kind, Type, type Static } from '@sinclair/typebox'
import { ROLES, type Role } from '../../access/guard/permissions.ts'
import { defineRule, issue, NO_ISSUES, OneOf } from '../../http/rules.ts'

/** The members that a stage tells: who is on duty, a role and those above it, or ids. */
export type StageTo = 'onDuty' | { role: Role } | { members: string[] }

const MAX_MEMBERS = 20
const STAGE_TO = defineRule('StageTo', value =>
  isStageTo(value)
    ? NO_ISSUES
    : issue('invalid_value', 'Must be "onDuty", {"role": "admin"} or {"members": [1 to 20 ids]}'),
)

function isStageTo(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === 'onDuty'
  const { role, members, ...others } = value as { role?: unknown; members?: unknown }
  if (Object.keys(others).length > 0 || (role === undefined) === (members === undefined))
    return false
  if (role !== undefined) return ROLES.some(known => known === role)
  return (
    Array.isArray(members) &&
    members.length > 0 &&
    members.length <= MAX_MEMBERS &&
    members.every(id => typeof id === 'string')
  )
}

const stage = {
  afterMinutes: Type.Integer({ minimum: 0, maximum: 1_440 }),
  to: Type.Unsafe<StageTo>({
    [Kind]: STAGE_TO,
    description: 'The members to tell. A role includes those above it.',
    anyOf: [
      Type.Literal('onDuty'),
      Type.Object({ role: OneOf(ROLES) }),
      Type.Object({ members: Type.Array(Type.String(), { minItems: 1, maxItems: MAX_MEMBERS }) }),
    ],
  }),
}

/** How the members are told of the alarms of a channel. */
export const Escalation = Type.Object({
  level: Type.Optional(
    OneOf(['normal', 'high', 'critical'], 'The lowest level of its alarms; `critical` by default.'),
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

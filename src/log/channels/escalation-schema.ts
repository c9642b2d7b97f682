import { Kind, Type, type Static } from '@sinclair/typebox'
import { ROLES, type Role } from '../../access/guard/permissions.ts'
import { defineRule, issue, NO_ISSUES, OneOf } from '../../http/rules.ts'

/** Who a stage tells: the member on duty, a role and those above it, or members by their ids. */
export type StageTo = 'onDuty' | { role: Role } | { members: string[] }

const MAX_MEMBERS = 20
const MEMBERS = {
  type: 'array',
  items: { type: 'string', pattern: '^per_[0-9a-z]{26}$' },
  minItems: 1,
  maxItems: MAX_MEMBERS,
} as const

const STAGE_TO = defineRule('StageTo', value =>
  isStageTo(value)
    ? NO_ISSUES
    : issue(
        'invalid_value',
        `Must be "onDuty", {"role": "admin"}, or {"members": […]} with 1 to ${MAX_MEMBERS} ids`,
      ),
)

function isStageTo(value: unknown): boolean {
  if (value === 'onDuty') return true
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return false
  const { role, members } = value as { role?: unknown; members?: unknown }
  if (members === undefined) return ROLES.some(known => known === role)
  return (
    Array.isArray(members) &&
    members.length >= 1 &&
    members.length <= MAX_MEMBERS &&
    members.every(id => typeof id === 'string' && new RegExp(MEMBERS.items.pattern).test(id))
  )
}

/** How the members are told of the alarms of a channel. */
export const Escalation = Type.Object({
  level: Type.Optional(
    OneOf(
      ['normal', 'high', 'critical'],
      'The lowest level of its alarms. `critical` if it is left out.',
    ),
  ),
  repeatMinutes: Type.Optional(
    Type.Integer({
      minimum: 2,
      maximum: 60,
      description: 'How often a critical alarm is repeated. 5 if it is left out.',
    }),
  ),
  stages: Type.Optional(
    Type.Array(
      Type.Object({
        afterMinutes: Type.Integer({ minimum: 0, maximum: 1_440 }),
        to: Type.Unsafe<StageTo>({
          [Kind]: STAGE_TO,
          description: 'Who is told: a role includes those above it.',
          anyOf: [
            { type: 'string', enum: ['onDuty'] },
            {
              type: 'object',
              properties: { role: { type: 'string', enum: [...ROLES] } },
              required: ['role'],
              additionalProperties: false,
            },
            {
              type: 'object',
              properties: { members: MEMBERS },
              required: ['members'],
              additionalProperties: false,
            },
          ],
        }),
      }),
      { maxItems: 3, description: 'In the order of their minutes. Without any, all are told.' },
    ),
  ),
})
export type Escalation = Static<typeof Escalation>

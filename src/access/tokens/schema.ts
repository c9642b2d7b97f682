import { Type, type Static } from '@sinclair/typebox'
import { Name, Named } from '../guard/schema.ts'
import { ROLES, TOKEN_KINDS } from '../guard/permissions.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'

const MAX_PROJECTS = 100
const MAX_DAYS = 365
export const DEFAULT_DAYS = 90

const RoleName = OneOf(ROLES)

const tokenFields = {
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  lastFour: Type.String(),
  /** The highest role with which the token acts. The present role of its creator limits it, too. */
  role: RoleName,
  /** The projects to which the token is limited. Null for no limit. */
  projects: Nullable(Type.Array(Named)),
  createdBy: Named,
  createdAt: Timestamp,
  /** To the minute. */
  lastUsedAt: Nullable(Timestamp),
  expiresAt: Timestamp,
  isExpired: Type.Boolean(),
}

/** A management token, without its secret. */
export const ManagementToken = Type.Object(tokenFields, closed)
export type ManagementToken = Static<typeof ManagementToken>

/** A new management token, with its secret. */
export const NewManagementToken = Type.Object({ ...tokenFields, token: Type.String() }, closed)
export type NewManagementToken = Static<typeof NewManagementToken>

export const TokenBody = Type.Object(
  {
    name: Name,
    role: RoleName,
    projects: Type.Optional(
      Nullable(
        Type.Array(Text({ minLength: 1, maxLength: 50 }), {
          minItems: 1,
          maxItems: MAX_PROJECTS,
          description: 'The ids of the projects to which the token is limited; null for no limit.',
        }),
      ),
    ),
    expiresInDays: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_DAYS, default: DEFAULT_DAYS }),
    ),
  },
  { examples: [{ name: 'Deploy', role: 'admin', expiresInDays: 90 }] },
)
export type TokenBody = Static<typeof TokenBody>

/** The token of a request, and what it reaches. */
export const CurrentToken = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    kind: OneOf(TOKEN_KINDS),
    role: RoleName,
    createdBy: Named,
    expiresAt: Timestamp,
    organizations: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          /** The role with which the token acts there. */
          role: RoleName,
          projects: Type.Array(Named),
        },
        closed,
      ),
    ),
  },
  closed,
)
export type CurrentToken = Static<typeof CurrentToken>

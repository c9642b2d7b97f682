import { Kind, Type, type Static } from '@sinclair/typebox'
import { defineRule, invalidType, issue, NO_ISSUES, OneOf } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { Name, Named } from '../guard/schema.ts'

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

export const SCOPES = [
  'events:write',
  'events:read',
  'identities:write',
  'identities:read',
  'identities:erase',
] as const
export type Scope = (typeof SCOPES)[number]

/** The scopes of a new key, unless others are chosen. Erasing must be chosen. */
export const DEFAULT_SCOPES: readonly Scope[] = SCOPES.filter(scope => scope !== 'identities:erase')

/**
 * Parses the scopes of a row, which are joined by spaces. They were validated when the key was
 * created.
 */
export function parseScopes(text: string): Scope[] {
  return text.split(' ').filter(scope => scope !== '') as Scope[]
}

export const Me = Type.Object(
  {
    organization: Named,
    project: Named,
    key: Type.Object(
      {
        id: Type.String(),
        name: Type.String(),
        limit: Type.Integer({ description: 'Requests per 60 seconds.' }),
        scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...SCOPES] })),
        expiresAt: Nullable(Timestamp),
      },
      closed,
    ),
  },
  { $id: 'Me', additionalProperties: false },
)
export type Me = Static<typeof Me>

export const MAX_RATE_LIMIT = 1_000_000_000
const Limit = Type.Integer({
  minimum: 1,
  maximum: MAX_RATE_LIMIT,
  description: 'Requests per 60 seconds.',
})
const ScopeName = OneOf(SCOPES)

const keyFields = {
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  lastFour: Type.String(),
  limit: Type.Integer(),
  scopes: Type.Array(ScopeName),
  createdAt: Timestamp,
  /** The name of the account that created it. Null if the command line or the first start did. */
  createdBy: Nullable(Type.String()),
  lastUsedAt: Nullable(Timestamp),
  expiresAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
  /** True if the log of the first start contains the key, and it was not rotated since. */
  isPrinted: Type.Boolean(),
  /**
   * Requests per hour of the last 24 hours, the current hour last. Includes rejected requests. Lags
   * a few seconds behind.
   */
  requestsPerHour: Type.Array(Type.Integer()),
}

/** A key, without its token. */
export const ApiKey = Type.Object(keyFields, closed)
export type ApiKey = Static<typeof ApiKey>

/** A new key, with its token. */
export const NewApiKey = Type.Object({ ...keyFields, key: Type.String() }, closed)

const FUTURE_MOMENT = defineRule('FutureMoment', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  // Admission checks the expiry by the clock of Postgres. Here the server's own clock is exact
  // enough.
  const ms = INSTANT.test(value) ? Date.parse(value) : 0
  // Postgres cannot read the year 10000 as JavaScript writes it.
  if (ms > Date.now() && ms < Date.UTC(10_000)) return NO_ISSUES
  return issue('invalid_value', 'Must be a time in the future, such as 2027-01-31T00:00:00Z')
})
const FutureMoment = Type.Unsafe<string>({
  [Kind]: FUTURE_MOMENT,
  type: 'string',
  format: 'date-time',
})

export const KeyBody = Type.Object(
  {
    name: Name,
    /** By default, all except `identities:erase`. */
    scopes: Type.Optional(Type.Array(ScopeName, { minItems: 1, maxItems: SCOPES.length })),
    limit: Type.Optional(Limit),
    expiresAt: Type.Optional(Nullable(FutureMoment)),
  },
  { examples: [{ name: 'Shop, production', scopes: ['events:write'], limit: 1_000 }] },
)
export type KeyBody = Static<typeof KeyBody>

export const KeyChange = Type.Object(
  {
    name: Type.Optional(Name),
    limit: Type.Optional(Limit),
  },
  { examples: [{ name: 'Shop, staging' }] },
)
export type KeyChange = Static<typeof KeyChange>

export const RotateBody = Type.Object(
  {
    overlapHours: Type.Optional(Type.Integer({ minimum: 0, maximum: 168 })),
  },
  { examples: [{ overlapHours: 24 }] },
)

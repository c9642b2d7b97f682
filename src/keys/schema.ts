import { Type, type Static } from '@sinclair/typebox'
import { Name } from '../accounts/name.ts'
import { OneOf, Text, type Issue } from '../http/rules.ts'
import { closed, Moment, Nullable } from '../http/shapes.ts'

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

export const SCOPES = [
  'events:write',
  'events:read',
  'identities:write',
  'identities:read',
] as const
export type Scope = (typeof SCOPES)[number]

/** The scopes of a key's row, joined by spaces; there may be none. They were checked when the key was made. */
export function parseScopes(text: string): Scope[] {
  return text.split(' ').filter(scope => scope !== '') as Scope[]
}

const Named = Type.Object({ id: Type.String(), name: Type.String() }, closed)

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
        expiresAt: Nullable(Moment),
      },
      closed,
    ),
  },
  { $id: 'Me', additionalProperties: false },
)
export type Me = Static<typeof Me>

export const MAX_LIMIT = 1_000_000_000
const Limit = Type.Integer({
  minimum: 1,
  maximum: MAX_LIMIT,
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
  createdAt: Moment,
  /** The name of whoever made it; null for the command line and the first start. */
  createdBy: Nullable(Type.String()),
  lastUsedAt: Nullable(Moment),
  expiresAt: Nullable(Moment),
  revokedAt: Nullable(Moment),
  /** Of the last 24 hours, the running one last; refused ones included, the last seconds not yet. */
  requestsPerHour: Type.Array(Type.Integer()),
}

/** A key as people may see it: never the secret. */
export const ApiKey = Type.Object(keyFields, closed)
export type ApiKey = Static<typeof ApiKey>

/** A key that was made just now, with its secret this once. */
export const NewApiKey = Type.Object({ ...keyFields, key: Type.String() }, closed)

export const KeyBody = Type.Object({
  name: Name,
  scopes: Type.Optional(Type.Array(ScopeName, { maxItems: SCOPES.length })),
  limit: Type.Optional(Limit),
  expiresAt: Type.Optional(Nullable(Text({ minLength: 1, maxLength: 40 }))),
})
export type KeyBody = Static<typeof KeyBody>

export const KeyChange = Type.Object({
  name: Type.Optional(Name),
  limit: Type.Optional(Limit),
})
export type KeyChange = Static<typeof KeyChange>

export const RotateBody = Type.Object({
  overlapHours: Type.Optional(Type.Integer({ minimum: 0, maximum: 168 })),
})

/** What is wrong with several fields of a new key. */
export function checkKey({ scopes, expiresAt }: KeyBody): readonly Issue[] {
  const issues: Issue[] = []
  if (scopes?.length === 0) {
    issues.push({ path: ['scopes'], code: 'too_short', message: 'Must name at least one scope' })
  }
  if (typeof expiresAt === 'string' && !isFuture(expiresAt)) {
    issues.push({
      path: ['expiresAt'],
      code: 'invalid_value',
      message: 'Must be a moment in the future, like 2027-01-31T00:00:00Z',
    })
  }
  return issues
}

function isFuture(text: string): boolean {
  // The server's own clock will do: a key that has expired opens nothing.
  return INSTANT.test(text) && Date.parse(text) > Date.now()
}

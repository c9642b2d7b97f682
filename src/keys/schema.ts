import { Type, type Static } from '@sinclair/typebox'

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

const Named = Type.Object(
  { id: Type.String(), name: Type.String() },
  { additionalProperties: false },
)

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
        expiresAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
      },
      { additionalProperties: false },
    ),
  },
  { $id: 'Me', additionalProperties: false },
)
export type Me = Static<typeof Me>

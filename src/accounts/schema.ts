import { Kind, Type, type Static } from '@sinclair/typebox'
import { parseEmail } from '../email.ts'
import { defineRule, invalidType, issue, NO_ISSUES, OneOf, Text } from '../http/rules.ts'
import { closed, Moment } from '../http/shapes.ts'
import { ROLES } from './permissions.ts'

export const RoleName = OneOf(ROLES)

const EMAIL = defineRule('Email', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  return parseEmail(value) === undefined
    ? issue('invalid_format', 'Must be an e-mail address, like ada@example.com')
    : NO_ISSUES
})
/** An e-mail address as somebody types it; `parseEmail` gives the spelling that is kept. */
export const Email = Type.Unsafe<string>({ [Kind]: EMAIL, type: 'string' })
/** A password as somebody types it. What a new one must be like, `checkPassword` says. */
export const Password = Text({ minLength: 1, maxLength: 512 })

/** A person as they are shown to themselves and to the members of their organizations. */
export const Person = Type.Object(
  { id: Type.String(), name: Type.String(), email: Type.String(), isOperator: Type.Boolean() },
  closed,
)
export type Person = Static<typeof Person>

/** Who is signed in, and what they can see. */
export const Account = Type.Object(
  {
    person: Person,
    /** Whether the password was typed within the last 10 minutes. */
    isVerified: Type.Boolean(),
    organizations: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          role: RoleName,
          projects: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
        },
        closed,
      ),
    ),
  },
  closed,
)
export type Account = Static<typeof Account>

/** A browser in which a person is signed in, as they see it themselves. */
export const SessionInfo = Type.Object(
  {
    id: Type.String(),
    createdAt: Moment,
    /** True to a minute. */
    lastSeenAt: Moment,
    address: Type.String(),
    userAgent: Type.String(),
    /** The same in words. */
    browser: Type.String({ examples: ['Firefox on Mac'] }),
    isInstalled: Type.Boolean(),
    isCurrent: Type.Boolean(),
  },
  closed,
)
export type SessionInfo = Static<typeof SessionInfo>

/** What there is to say of an act that is done. */
export const Nothing = Type.Object({}, closed)

/** How many sessions an act has ended. */
export const Ended = Type.Object({ sessionsEnded: Type.Integer({ minimum: 0 }) }, closed)

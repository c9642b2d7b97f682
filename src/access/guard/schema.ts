import { Kind, Type, type Static } from '@sinclair/typebox'
import { parseEmail } from '../../base/config/values.ts'
import { isDisruptive } from '../../base/display-text.ts'
import {
  checkCharacters,
  checkLength,
  defineRule,
  invalidType,
  issue,
  NO_ISSUES,
  NOT_BLANK,
  OneOf,
  Text,
} from '../../http/rules.ts'
import { closed, Timestamp } from '../../http/schema-parts.ts'
import { ROLES } from './permissions.ts'

/** The ways to sign in. A link is a setup link or an invite. */
const SIGN_IN_METHODS = ['password', 'passkey', 'openid', 'proxy', 'link'] as const

export type SignInMethod = (typeof SIGN_IN_METHODS)[number]

const MAX_LENGTH = 100

const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\s]*$/u

const NAME = defineRule('Name', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const length = checkLength(value.trim(), schema)
  if (length.length > 0) return length
  const characters = checkCharacters(value)
  if (characters.length > 0) return characters
  if (INVISIBLE.test(value)) return issue('invalid_value', 'Must contain a visible character')
  return isDisruptive(value.trim())
    ? issue(
        'invalid_value',
        'Must not contain control characters or characters that change the direction of text',
      )
    : []
})

/**
 * The name of an account, an organization, a project or a key. `toName` returns the stored form.
 */
export const Name = Type.Unsafe<string>({
  [Kind]: NAME,
  type: 'string',
  minLength: 1,
  maxLength: MAX_LENGTH,
  pattern: NOT_BLANK,
  description:
    'White space around it is removed, and does not count. It must contain a visible character. Control characters ' +
    'and characters that change the direction of text are rejected.',
})

/** Returns the stored form of a valid name. */
export function toName(name: string): string {
  return name.trim()
}

export const RoleName = OneOf(ROLES)

const EMAIL = defineRule('Email', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  return parseEmail(value) === undefined
    ? issue('invalid_format', 'Must be an e-mail address, such as ada@example.com')
    : NO_ISSUES
})

/** An e-mail address as entered. `parseEmail` returns the stored form. */
export const Email = Type.Unsafe<string>({ [Kind]: EMAIL, type: 'string' })

/** A password as entered. `checkPassword` applies the policy to new ones. */
export const Password = Text({ minLength: 1, maxLength: 512 })

export const Named = Type.Object({ id: Type.String(), name: Type.String() }, closed)

/** An account as it and the other members of its organizations see it. */
export const AccountInfo = Type.Object(
  { id: Type.String(), name: Type.String(), email: Type.String(), isOperator: Type.Boolean() },
  closed,
)
export type AccountInfo = Static<typeof AccountInfo>

/** A session, as its own account sees it. */
export const SessionInfo = Type.Object(
  {
    id: Type.String(),
    createdAt: Timestamp,
    /** To the minute. */
    lastSeenAt: Timestamp,
    address: Type.String(),
    userAgent: Type.String(),
    /** The browser and the system, for display. */
    browser: Type.String({ examples: ['Firefox on Mac'] }),
    method: OneOf(SIGN_IN_METHODS),
    /** True if the account signed in, or was verified later, with a passkey or a code. */
    isMultiFactor: Type.Boolean(),
    isInstalled: Type.Boolean(),
    isCurrent: Type.Boolean(),
  },
  closed,
)
export type SessionInfo = Static<typeof SessionInfo>

/** The data of an action that returns nothing. */
export const NoData = Type.Object({}, closed)

/** The id of a deleted resource. */
export const DeletedId = Type.Object({ id: Type.String() }, closed)

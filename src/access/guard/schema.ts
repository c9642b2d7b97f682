import { Kind, Type, type Static } from '@sinclair/typebox'
import { parseEmail } from '../../base/config/values.ts'
import { isDisruptive } from '../../base/disruptive-text.ts'
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
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
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

const RoleName = OneOf(ROLES)

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

const Named = Type.Object({ id: Type.String(), name: Type.String() }, closed)

/** An account as it and the other members of its organizations see it. */
export const AccountInfo = Type.Object(
  { id: Type.String(), name: Type.String(), email: Type.String(), isOperator: Type.Boolean() },
  closed,
)
export type AccountInfo = Static<typeof AccountInfo>

/** The ways in which an account can sign in and be verified. */
const Credentials = Type.Object(
  {
    hasPassword: Type.Boolean(),
    /** The number of usable passkeys. */
    passkeys: Type.Integer({ minimum: 0 }),
    /** True if signing in with the password also requires a code. */
    hasSecondFactor: Type.Boolean(),
    /** The number of recovery codes that are left. */
    recoveryCodes: Type.Integer({ minimum: 0 }),
  },
  closed,
)

const OwnProject = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    isSample: Type.Boolean({ description: 'True for the project with sample data.' }),
  },
  closed,
)

/** The signed-in account, with its organizations. */
export const Account = Type.Object(
  {
    person: AccountInfo,
    /** True if the account was verified within the last 10 minutes. */
    isVerified: Type.Boolean(),
    credentials: Credentials,
    organizations: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          name: Type.String(),
          role: RoleName,
          /** True if it requires a passkey or a code, and the session has neither. */
          needsSecondFactor: Type.Boolean(),
          /** Empty while `needsSecondFactor`. */
          projects: Type.Array(OwnProject),
        },
        closed,
      ),
    ),
  },
  closed,
)
export type Account = Static<typeof Account>

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

/** The number of sessions that an action ended. */
export const EndedSessions = Type.Object({ sessionsEnded: Type.Integer({ minimum: 0 }) }, closed)

/** The id of a deleted resource. */
export const DeletedId = Type.Object({ id: Type.String() }, closed)

export const Organization = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    /** The caller's own role. */
    role: RoleName,
    createdAt: Timestamp,
    members: Type.Integer(),
    /** True if members need a passkey or a code to reach the organization. */
    requiresSecondFactor: Type.Boolean(),
    /** The number of members who have neither a passkey nor an authenticator app. */
    membersWithoutSecondFactor: Type.Integer({ minimum: 0 }),
    projects: Type.Array(Named),
  },
  closed,
)
export type Organization = Static<typeof Organization>

export const OrganizationBody = Type.Object({ name: Name }, { examples: [{ name: 'Acme' }] })
export const OrganizationChange = Type.Object(
  {
    name: Type.Optional(Name),
    requiresSecondFactor: Type.Optional(Type.Boolean()),
  },
  { examples: [{ name: 'Acme Ltd' }] },
)
export type OrganizationChange = Static<typeof OrganizationChange>

export const Project = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    organization: Named,
    /** The caller's own role. */
    role: RoleName,
    keepDays: Nullable(Type.Integer({ description: 'Days for which events are kept.' })),
    createdAt: Timestamp,
    /** The seq of the newest event, 0 for an empty log. */
    head: Type.Integer(),
  },
  closed,
)
export type Project = Static<typeof Project>

export const ProjectBody = Type.Object({ name: Name }, { examples: [{ name: 'Shop' }] })
export const ProjectChange = Type.Object(
  {
    name: Type.Optional(Name),
    keepDays: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 36_500 }))),
  },
  { examples: [{ name: 'Shop', keepDays: 30 }] },
)
export type ProjectChange = Static<typeof ProjectChange>

export const Member = Type.Object(
  {
    person: AccountInfo,
    role: RoleName,
    joinedAt: Timestamp,
    /** The last use of any session of the account, to the minute. Null without a session. */
    lastSeenAt: Nullable(Timestamp),
  },
  closed,
)
export type Member = Static<typeof Member>

export const RoleBody = Type.Object({ role: RoleName }, { examples: [{ role: 'admin' }] })

/** A reset link as it is created. */
export const NewResetLink = Type.Object(
  { id: Type.String(), url: Type.String(), expiresAt: Timestamp },
  closed,
)
export type NewResetLink = Static<typeof NewResetLink>

/** An open reset link, without its secret. */
export const OpenResetLink = Type.Object(
  {
    id: Type.String(),
    /** The account whose password it sets. */
    person: Named,
    /** The name of the owner who created it. Null for the command line. */
    createdBy: Nullable(Type.String()),
    createdAt: Timestamp,
    expiresAt: Timestamp,
  },
  closed,
)
export type OpenResetLink = Static<typeof OpenResetLink>

const invite = {
  id: Type.String(),
  role: RoleName,
  /** The only e-mail address that can accept the invite. Null for any. */
  email: Nullable(Type.String()),
  expiresAt: Timestamp,
}
export const Invite = Type.Object(
  { ...invite, invitedBy: Type.String(), createdAt: Timestamp },
  closed,
)
export type Invite = Static<typeof Invite>

export const NewInvite = Type.Object({ ...invite, url: Type.String() }, closed)
export type NewInvite = Static<typeof NewInvite>

export const InviteBody = Type.Object(
  { role: RoleName, email: Type.Optional(Nullable(Email)) },
  { examples: [{ role: 'viewer', email: 'ada@example.com' }] },
)

/** An invite as the holder of its link sees it. */
export const InvitePreview = Type.Object(
  {
    organization: Type.Object({ name: Type.String() }, closed),
    role: RoleName,
    invitedBy: Type.Object({ name: Type.String() }, closed),
    email: Nullable(Type.String()),
    expiresAt: Timestamp,
  },
  closed,
)
export type InvitePreview = Static<typeof InvitePreview>

const Token = Text({ minLength: 1, maxLength: 100 })
export const InviteTokenBody = Type.Object(
  { token: Token },
  { examples: [{ token: 'the token of the link' }] },
)
export const AcceptInviteBody = Type.Object(
  {
    token: Token,
    /** The new account. Requests without a session must have all three fields. */
    name: Type.Optional(Name),
    email: Type.Optional(Email),
    password: Type.Optional(Password),
  },
  {
    examples: [
      {
        token: 'the token of the link',
        name: 'Ada',
        email: 'ada@example.com',
        password: 'correct horse battery staple',
      },
    ],
  },
)
export type AcceptInviteBody = Static<typeof AcceptInviteBody>

export const JoinedOrganization = Type.Object(
  {
    organization: Named,
    role: RoleName,
  },
  closed,
)
export type JoinedOrganization = Static<typeof JoinedOrganization>

const Count = Type.Integer({ minimum: 0 })

/** The state of the server, for its operator. */
export const ServerInfo = Type.Object(
  {
    version: Type.String(),
    runtime: Type.String(),
    /** The URL of the source code, if package.json has one. */
    source: Type.Optional(Type.String()),
    url: Type.String(),
    /** True if BASE_URL is set. Otherwise the URL is derived from the port. */
    isUrlSet: Type.Boolean(),
    isHttps: Type.Boolean(),
    startedAt: Timestamp,
    database: Type.Object(
      {
        kind: Type.String(),
        version: Type.String(),
        bytes: Type.Integer(),
        /** The connected standbys. Null if the user of the database may not see them. */
        standbys: Nullable(
          Type.Array(
            Type.Object(
              {
                name: Type.String(),
                /** True if its promotion loses no accepted event. */
                isSynchronous: Type.Boolean(),
                /** Its promotion now would lose this WAL, and this time. */
                lagBytes: Type.Number({ minimum: 0 }),
                lagSeconds: Type.Number({ minimum: 0 }),
              },
              closed,
            ),
          ),
        ),
      },
      closed,
    ),
    /**
     * The disk of DATA_DIR. Null without DATA_DIR, or if the disk did not respond within a second.
     */
    disk: Nullable(
      Type.Object({ folder: Type.String(), freeBytes: Count, totalBytes: Count }, closed),
    ),
    projects: Type.Integer(),
    /** The number of events ever accepted by the existing projects. */
    events: Type.Integer(),
    /** Open live feed sockets of this process. */
    sockets: Count,
    deliveries: Type.Object(
      {
        /** Waiting deliveries of each kind, counted up to 100,000. */
        pending: Type.Object({ push: Count, webhook: Count }, closed),
        /** How long the oldest due delivery is overdue, in milliseconds. */
        oldestMs: Count,
        /** Running attempts of this process. */
        running: Count,
      },
      closed,
    ),
    push: Type.Object(
      {
        /** The id of the key that signs pushes. Null until the first device asks for it. */
        keyId: Nullable(Type.String()),
        /**
         * The contact for push services: VAPID_SUBJECT or the operator's address. Null without
         * either.
         */
        subject: Nullable(Type.String()),
        isSubjectSet: Type.Boolean(),
        devices: Count,
      },
      closed,
    ),
  },
  closed,
)
export type ServerInfo = Static<typeof ServerInfo>

const Quota = Type.Object({ used: Count, limit: Count }, closed)

/** The usage of an organization beside its quotas. */
export const OrganizationUsage = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    /** Events since the start of the minute. */
    events: Quota,
    /** Bytes of events and users since midnight UTC. */
    bytes: Quota,
    /** Counted up to 10,000. */
    channels: Quota,
    webhooks: Quota,
  },
  closed,
)
export type OrganizationUsage = Static<typeof OrganizationUsage>

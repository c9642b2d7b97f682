import { Type, type Static } from '@sinclair/typebox'
import { Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { Name, RoleName, Email, Password, Named, AccountInfo } from '../guard/schema.ts'

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

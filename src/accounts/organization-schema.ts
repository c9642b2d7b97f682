import { Type, type Static } from '@sinclair/typebox'
import { Text } from '../http/rules.ts'
import { closed, Moment, Nullable } from '../http/shapes.ts'
import { Name } from './name.ts'
import { Email, Password, Person, RoleName } from './schema.ts'

/** What is gone now. */
export const Gone = Type.Object({ id: Type.String() }, closed)

export const Organization = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    /** Of whoever asks. */
    role: RoleName,
    createdAt: Moment,
    members: Type.Integer(),
    projects: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }, closed)),
  },
  closed,
)
export type Organization = Static<typeof Organization>

export const OrganizationBody = Type.Object({ name: Name })

export const Project = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    organization: Type.Object({ id: Type.String(), name: Type.String() }, closed),
    /** Of whoever asks. */
    role: RoleName,
    keepDays: Nullable(Type.Integer({ description: 'Days for which events are kept.' })),
    createdAt: Moment,
    /** The seq of the newest event, 0 for an empty log. */
    head: Type.Integer(),
  },
  closed,
)
export type Project = Static<typeof Project>

export const ProjectBody = Type.Object({ name: Name })
export const ProjectChange = Type.Object({
  name: Type.Optional(Name),
  keepDays: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 36_500 }))),
})
export type ProjectChange = Static<typeof ProjectChange>

export const Member = Type.Object(
  {
    person: Person,
    role: RoleName,
    joinedAt: Moment,
    /** When one of their sessions was last used, to the minute; null for nobody who is signed in. */
    lastSeenAt: Nullable(Moment),
  },
  closed,
)
export type Member = Static<typeof Member>

export const RoleBody = Type.Object({ role: RoleName })

/** A link that shows its secret this once. */
export const Link = Type.Object({ url: Type.String(), expiresAt: Moment }, closed)
export type Link = Static<typeof Link>

const invite = {
  id: Type.String(),
  role: RoleName,
  /** The one address for which the invite is, if it is bound. */
  email: Nullable(Type.String()),
  expiresAt: Moment,
}
export const Invite = Type.Object(
  { ...invite, invitedBy: Type.String(), createdAt: Moment },
  closed,
)
export type Invite = Static<typeof Invite>

export const NewInvite = Type.Object({ ...invite, url: Type.String() }, closed)
export type NewInvite = Static<typeof NewInvite>

export const InviteBody = Type.Object({ role: RoleName, email: Type.Optional(Nullable(Email)) })

/** An invite as whoever holds its link sees it. */
export const Invitation = Type.Object(
  {
    organization: Type.Object({ name: Type.String() }, closed),
    role: RoleName,
    invitedBy: Type.Object({ name: Type.String() }, closed),
    email: Nullable(Type.String()),
    expiresAt: Moment,
  },
  closed,
)
export type Invitation = Static<typeof Invitation>

const Token = Text({ minLength: 1, maxLength: 100 })
export const TokenBody = Type.Object({ token: Token })
export const AcceptBody = Type.Object({
  token: Token,
  /** Whoever is not signed in makes an account with these. */
  name: Type.Optional(Name),
  email: Type.Optional(Email),
  password: Type.Optional(Password),
})
export type AcceptBody = Static<typeof AcceptBody>

export const Joined = Type.Object(
  {
    organization: Type.Object({ id: Type.String(), name: Type.String() }, closed),
    role: RoleName,
  },
  closed,
)
export type Joined = Static<typeof Joined>

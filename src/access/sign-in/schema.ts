import { Type, type Static } from '@sinclair/typebox'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { RoleName, Named, AccountInfo } from '../guard/schema.ts'

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

/** The number of sessions that an action ended. */
export const EndedSessions = Type.Object({ sessionsEnded: Type.Integer({ minimum: 0 }) }, closed)

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

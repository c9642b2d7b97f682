import { isAtLeast, type Role, type TokenKind } from './permissions.ts'

/** The uuids of the organization, or of the project, that a request is about. */
export interface Ids {
  organizationId?: string | undefined
  projectId?: string | undefined
}

/** The proof of a session. */
export interface Proven {
  /** True if the account has a usable passkey or a confirmed authenticator app. */
  hasFactor: boolean
  /** True if the session proved more than one factor. */
  isMultiFactor: boolean
}

/**
 * The account of a request, with what the request reaches. `organizationId` and `projectId` are
 * those of the request, if they exist. `role` is undefined unless the account is a member of the
 * organization.
 */
export interface Admitted {
  account: { id: string; name: string; email: string; isOperator: boolean }
  /**
   * True if the account was verified within the last 10 minutes. Always true for a token, because
   * its creation required it.
   */
  isVerified: boolean
  /**
   * True if the organization requires more than the password with which the session began. A token
   * is as strong as the session that created it.
   */
  needsSecondFactor: boolean
  organizationId: string | undefined
  projectId: string | undefined
  /** With a token, at most the role of the token. */
  role: Role | undefined
  /** The session of the request. Undefined for a token. */
  session?: Proven | undefined
  /** The management token of the request. Undefined for a session. */
  token?: RequestToken | undefined
}

/** The management token of a request. */
export interface RequestToken {
  /** A uuid. */
  id: string
  name: string
  kind: TokenKind
  /** The highest role with which it acts. */
  role: Role
  /** True if it is limited to projects. */
  isLimited: boolean
}

/** A request with a management token. `account` is the one that created it. */
export interface AdmittedToken extends Admitted {
  session?: undefined
  token: RequestToken
}

/** Returns the role with which a request acts, if its account has `role` in the organization. */
export function toEffectiveRole(role: Role, token: RequestToken | undefined): Role {
  return token && isAtLeast(role, token.role) ? token.role : role
}

/**
 * Returns the uuid under which a request reads marks and settings of its own. An organization token
 * has none of its creator's.
 */
export function toReaderId({ account, token }: Admitted): string {
  return token?.kind === 'organization' ? token.id : account.id
}

/** Returns the account that makes a change, or the name of an organization token. */
export function toAuthor({ account, token }: Pick<Admitted, 'account' | 'token'>) {
  return token?.kind === 'organization'
    ? { accountId: null, tokenName: token.name }
    : { accountId: account.id, tokenName: null }
}

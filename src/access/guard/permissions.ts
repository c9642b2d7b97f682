import { Fault } from '../../base/errors.ts'
import {
  isOnCredentials,
  requireAnyFactor,
  requireOwnFactor,
  type CredentialAction,
  type Proven,
} from './credential-table.ts'

/** All roles, from the least to the most powerful. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** The kinds of management tokens. */
export const TOKEN_KINDS = ['personal', 'organization'] as const
export type TokenKind = (typeof TOKEN_KINDS)[number]

/**
 * Every action of /api, with its scope and the lowest role that may do it. Actions that reveal a
 * secret or destroy something also require a verification within the last 10 minutes: a password or
 * a passkey (contract.md §12). So does an invite or a role change that makes an admin or an owner.
 *
 * By default, tokens may do every action on organizations and projects, and nothing else. `tokens`
 * names the exceptions. A token never creates a credential, such as a key or a reset link, and
 * never deletes a project, an organization or a user. It needs no verification: its creation
 * required one.
 *
 * `CREDENTIAL_ACTIONS` says what actions on credentials require beyond that.
 */
export const ACTIONS = {
  'setup.read': { on: 'anyone' },
  'setup.complete': { on: 'anyone' },
  'session.create': { on: 'anyone', revokesAccess: true },
  // A part of `session.create`.
  'account.prove': { on: 'anyone' },
  'session.end': { on: 'anyone', revokesAccess: true },
  'reset.complete': { on: 'anyone', revokesAccess: true },
  'invite.read': { on: 'anyone' },
  'invite.accept': { on: 'anyone' },
  'signIn.read': { on: 'anyone' },
  'openid.visit': { on: 'anyone' },

  'currentToken.read': { on: 'token', tokens: 'all' },

  'account.read': { on: 'account' },
  'overview.read': { on: 'account' },
  'account.edit': { on: 'account' },
  // A part of `account.edit`.
  'account.changeAddress': { on: 'account', requiresVerification: true },
  'account.export': { on: 'account' },
  'account.delete': { on: 'account', requiresVerification: true, revokesAccess: true },
  'account.verify': { on: 'account' },
  'account.verifyByPasskey': { on: 'account' },
  'account.changePassword': { on: 'account', revokesAccess: true },
  'account.removePassword': { on: 'account', requiresVerification: true, revokesAccess: true },
  'account.addSecondFactor': { on: 'account' },
  'secondFactor.create': { on: 'account', requiresVerification: true },
  'secondFactor.confirm': { on: 'account', requiresVerification: true },
  'secondFactor.remove': { on: 'account', requiresVerification: true, revokesAccess: true },
  'secondFactor.createCodes': { on: 'account', requiresVerification: true },
  'passkeys.read': { on: 'account' },
  'passkeys.create': { on: 'account', requiresVerification: true },
  'passkeys.add': { on: 'account', requiresVerification: true },
  'passkeys.edit': { on: 'account' },
  'passkeys.remove': { on: 'account', requiresVerification: true, revokesAccess: true },
  'sessions.read': { on: 'account' },
  'sessions.end': { on: 'account', revokesAccess: true },
  'connections.create': { on: 'account', requiresVerification: true },
  'connections.remove': { on: 'account', requiresVerification: true },
  'tokens.read': { on: 'account' },
  'tokens.create': { on: 'account', requiresVerification: true },
  'tokens.withdraw': { on: 'account' },

  'push.read': { on: 'account' },
  'push.subscribe': { on: 'account' },
  'push.edit': { on: 'account' },
  'push.remove': { on: 'account' },
  'push.test': { on: 'account' },

  'server.read': { on: 'installation' },
  'providers.read': { on: 'installation' },
  'providers.check': { on: 'installation' },
  'organizations.create': { on: 'installation' },

  'organization.read': { on: 'organization', role: 'viewer' },
  'organization.leave': {
    on: 'organization',
    role: 'viewer',
    tokens: 'none',
    revokesAccess: true,
    withoutSecondFactor: true,
  },
  'organization.edit': { on: 'organization', role: 'owner', revokesAccess: true },
  'organization.delete': {
    on: 'organization',
    role: 'owner',
    requiresVerification: true,
    tokens: 'none',
    revokesAccess: true,
  },
  'members.read': { on: 'organization', role: 'viewer' },
  'members.remove': { on: 'organization', role: 'admin', revokesAccess: true },
  'members.changeRole': { on: 'organization', role: 'owner' },
  'members.resetPassword': {
    on: 'organization',
    role: 'owner',
    requiresVerification: true,
    tokens: 'none',
  },
  'resetLinks.read': { on: 'organization', role: 'owner' },
  'resetLinks.withdraw': { on: 'organization', role: 'owner' },
  'invites.read': { on: 'organization', role: 'admin' },
  'invites.create': { on: 'organization', role: 'admin' },
  'invites.withdraw': { on: 'organization', role: 'admin' },
  'audit.read': { on: 'organization', role: 'admin' },
  'signInRules.read': { on: 'organization', role: 'admin' },
  // Rules can make anybody an owner, and draw in the accounts of a whole provider. The provider
  // belongs to the installation.
  'signInRules.edit': {
    on: 'organization',
    role: 'owner',
    requiresOperator: true,
    requiresVerification: true,
    tokens: 'none',
  },
  'projects.create': { on: 'organization', role: 'admin' },
  'sampleProject.create': { on: 'organization', role: 'admin' },
  'sampleProject.delete': {
    on: 'organization',
    role: 'admin',
    tokens: 'none',
    revokesAccess: true,
  },
  'organizationTokens.read': { on: 'organization', role: 'admin', tokens: 'none' },
  'organizationTokens.create': {
    on: 'organization',
    role: 'admin',
    requiresVerification: true,
    tokens: 'none',
  },
  'organizationTokens.withdraw': { on: 'organization', role: 'admin', tokens: 'none' },

  'project.read': { on: 'project', role: 'viewer' },
  'project.edit': { on: 'project', role: 'admin' },
  'project.delete': {
    on: 'project',
    role: 'owner',
    requiresVerification: true,
    tokens: 'none',
    revokesAccess: true,
  },
  'keys.read': { on: 'project', role: 'admin' },
  'keys.create': { on: 'project', role: 'admin', requiresVerification: true, tokens: 'none' },
  'keys.edit': { on: 'project', role: 'admin' },
  'keys.rotate': { on: 'project', role: 'admin', requiresVerification: true, tokens: 'none' },
  'keys.revoke': { on: 'project', role: 'admin' },
  'channels.read': { on: 'project', role: 'viewer' },
  'channels.create': { on: 'project', role: 'member' },
  'channels.edit': { on: 'project', role: 'member' },
  'notifications.read': { on: 'project', role: 'viewer', tokens: 'personal' },
  'notifications.edit': { on: 'project', role: 'viewer', tokens: 'personal' },
  'events.read': { on: 'project', role: 'viewer' },
  'events.markRead': { on: 'project', role: 'viewer', tokens: 'personal' },
  'events.delete': { on: 'project', role: 'admin' },
  'deliveries.read': { on: 'project', role: 'admin' },
  'deliveries.replay': { on: 'project', role: 'admin' },
  'insights.read': { on: 'project', role: 'viewer' },
  'insights.edit': { on: 'project', role: 'member' },
  // Changes of a shared view also require the role member.
  'views.read': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.edit': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.setBell': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.markSeen': { on: 'project', role: 'viewer', tokens: 'personal' },
  'users.read': { on: 'project', role: 'viewer' },
  'users.editAliases': { on: 'project', role: 'member' },
  'users.erase': { on: 'project', role: 'admin', requiresVerification: true, tokens: 'none' },
  'webhooks.read': { on: 'project', role: 'viewer' },
  'webhooks.readAttempts': { on: 'project', role: 'admin' },
  'webhooks.create': { on: 'project', role: 'admin', requiresVerification: true },
  // Requires verification, because it can send the events to another URL.
  'webhooks.edit': { on: 'project', role: 'admin', requiresVerification: true },
  'webhooks.rotate': { on: 'project', role: 'admin', requiresVerification: true },
  'webhooks.operate': { on: 'project', role: 'admin' },
  'webhooks.delete': { on: 'project', role: 'admin', requiresVerification: true },
} as const satisfies Record<string, Rule> & Record<CredentialAction, Rule>
export type Action = keyof typeof ACTIONS

type Rule = (
  | { on: 'anyone' | 'token' }
  | { on: 'account' | 'installation'; requiresVerification?: boolean }
  | {
      on: 'organization' | 'project'
      role: Role
      /** True if the account must also be an operator of the server. */
      requiresOperator?: boolean
      requiresVerification?: boolean
    }
) & {
  /** The tokens that may do the action. */
  tokens?: 'all' | 'personal' | 'none'
  /** True if the action can take access away. Open sockets are then checked at once. */
  revokesAccess?: boolean
  /** True if a session without the second factor that the organization requires may do it. */
  withoutSecondFactor?: boolean
}

/**
 * The scope of an action: anyone, the own token, the own account, the installation, an organization
 * or a project.
 */
export type ActionScope<A extends Action = Action> = (typeof ACTIONS)[A]['on']

/** The actions of one scope. */
export type ActionOn<P extends ActionScope> = {
  [A in Action]: ActionScope<A> extends P ? A : never
}[Action]

/** The account that requests an action. */
export interface Requester {
  isOperator: boolean
  /** True if the account was verified within the last 10 minutes. */
  isVerified: boolean
  /** True if the organization requires more than the password with which the session began. */
  needsSecondFactor: boolean
  /** Undefined for a token. */
  session?: Proven | undefined
  /** The token of the request, if it has one. */
  token?: { kind: TokenKind; isLimited: boolean } | undefined
}

/** The part of a requester that a verification depends on. */
export type Verifiable = Pick<Requester, 'isVerified' | 'session'>

/**
 * The organization or project that a request is about. Without a role, the error hides that it
 * exists.
 */
export interface Resource {
  kind: 'organization' | 'project'
  role: Role | undefined
}

/**
 * Throws `signed_out`, `not_found`, `second_factor_needed`, `forbidden` or `verification_needed`
 * unless `account` may do `action` to `resource`.
 */
export function authorize(
  account: Requester | undefined,
  action: Action,
  resource: Resource | undefined,
): void {
  const rule: Rule = ACTIONS[action]
  if (account?.token && !allowsToken(rule, account.token.kind)) {
    throw new Fault('forbidden', toTokenRefusal(rule))
  }
  if (rule.on === 'anyone') return
  if (!account) throw new Fault('signed_out', 'Sign in first')
  if (rule.on === 'token') {
    if (!account.token) throw new Fault('forbidden', 'Requires a management token')
    return
  }
  if (rule.on === 'account') {
    requireProof(account, action, rule.requiresVerification)
    return
  }
  if (rule.on === 'installation') {
    if (!account.isOperator) throw new Fault('forbidden', 'Requires the operator of the server')
    requireProof(account, action, rule.requiresVerification)
    return
  }
  if (resource?.kind !== rule.on || resource.role === undefined) {
    const isProject = rule.on === 'project'
    throw new Fault(
      'not_found',
      isProject ? 'No project has this id' : 'No organization has this id',
    )
  }
  if (account.needsSecondFactor && !rule.withoutSecondFactor) {
    throw new Fault(
      'second_factor_needed',
      'This organization requires a passkey or a code. Add one under Account, or sign in with it.',
    )
  }
  if (!isAtLeast(resource.role, rule.role)) {
    const { role: ownRole } = resource
    const whose = account.token ? "The token's" : 'Your'
    throw new Fault('forbidden', `Requires the ${rule.role} role. ${whose} role is ${ownRole}.`)
  }
  if (rule.requiresOperator && !account.isOperator) {
    throw new Fault('forbidden', 'Requires an owner who is an operator of the server')
  }
  if (rule.on === 'organization' && account.token?.isLimited) {
    throw new Fault('forbidden', 'This token is limited to projects. Use one without that limit.')
  }
  requireProof(account, action, rule.requiresVerification)
}

/** Throws unless the session has proved what the action requires. */
function requireProof(account: Requester, action: Action, requiresVerification = false): void {
  if (account.session && isOnCredentials(action)) requireOwnFactor(action, account.session)
  if (requiresVerification) requireVerified(account)
}

/** Returns the credentials with which an action can be done. Actions open to anyone need none. */
export function listCredentials(action: Action): ('session' | 'token')[] {
  const rule: Rule = ACTIONS[action]
  if (rule.on === 'anyone') return []
  const isForTokens = TOKEN_KINDS.some(kind => allowsToken(rule, kind))
  return [
    ...(rule.on === 'token' ? [] : ['session' as const]),
    ...(isForTokens ? ['token' as const] : []),
  ]
}

function allowsToken({ on, tokens }: Rule, kind: TokenKind): boolean {
  const allowed = tokens ?? (on === 'organization' || on === 'project' ? 'all' : 'none')
  return allowed === 'all' || allowed === kind
}

function toTokenRefusal({ tokens }: Rule): string {
  return tokens === 'personal'
    ? 'Organization tokens cannot do this. Use a personal token.'
    : 'Tokens cannot do this. Sign in to the dashboard.'
}

/**
 * Throws `verification_needed` unless the account was verified within the last 10 minutes, and
 * `second_factor_needed` if it has a factor that its session did not prove.
 */
export function requireVerified({ isVerified, session }: Verifiable): void {
  // A passkey is also a verification, so the factor is asked for first.
  if (session) requireAnyFactor(session)
  if (isVerified) return
  throw new Fault(
    'verification_needed',
    'Confirm that it is you. The last confirmation was more than 10 minutes ago.',
  )
}

/**
 * Throws `verification_needed` like `requireVerified` if `role` manages members: an admin
 * or owner who was made in an unattended browser would keep the access.
 */
export function requireVerifiedFor(role: Role, account: Verifiable): void {
  if (isAtLeast(role, 'admin')) requireVerified(account)
}

/** Returns whether `role` has all permissions of `needed`. */
export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Returns whether `action` can take access away. */
export function revokesAccess(action: Action): boolean {
  const rule: Rule = ACTIONS[action]
  return rule.revokesAccess ?? false
}

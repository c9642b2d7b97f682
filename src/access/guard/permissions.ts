/** All roles, from the least to the most powerful. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** The kinds of management tokens. */
export const TOKEN_KINDS = ['personal', 'organization'] as const
export type TokenKind = (typeof TOKEN_KINDS)[number]

/**
 * Every action of /api, with its scope, the lowest role that may do it, and its proof. Actions that
 * reveal a secret or destroy something require a verification (contract.md §12). So does an invite
 * or a role change that makes an admin or an owner. Actions that change how an account signs in,
 * give lasting access or destroy require its own factor. Otherwise a stolen password, or an
 * identity at the proxy or a provider, would remove or replace the factor that it lacks: as an
 * owner, also with the help of a member that it made an owner.
 *
 * By default, tokens may do every action on organizations and projects, and nothing else. `tokens`
 * names the exceptions. A token never creates a credential, such as a key or a reset link, and
 * never deletes a project, an organization or a user. It needs no proof: its creation required one.
 */
export const ACTIONS = {
  'setup.read': { on: 'anyone' },
  'setup.complete': { on: 'anyone' },
  'session.create': { on: 'anyone', revokesAccess: true },
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
  'account.changeAddress': { on: 'account', proof: 'verification' },
  'account.export': { on: 'account', proof: 'factor' },
  'account.delete': { on: 'account', proof: 'verification', revokesAccess: true },
  'account.verify': { on: 'account' },
  'account.verifyByPasskey': { on: 'account' },
  'account.changePassword': { on: 'account', proof: 'factor', revokesAccess: true },
  'account.removePassword': { on: 'account', proof: 'verification', revokesAccess: true },
  'account.addSecondFactor': { on: 'account' },
  'secondFactor.create': { on: 'account', proof: 'verification' },
  'secondFactor.confirm': { on: 'account', proof: 'verification' },
  'secondFactor.remove': { on: 'account', proof: 'verification', revokesAccess: true },
  'secondFactor.createCodes': { on: 'account', proof: 'verification' },
  'passkeys.read': { on: 'account' },
  'passkeys.create': { on: 'account', proof: 'verification' },
  'passkeys.add': { on: 'account', proof: 'verification' },
  'passkeys.edit': { on: 'account' },
  'passkeys.remove': { on: 'account', proof: 'verification', revokesAccess: true },
  'sessions.read': { on: 'account' },
  'sessions.end': { on: 'account', revokesAccess: true },
  'connections.create': { on: 'account', proof: 'verification' },
  'connections.remove': { on: 'account', proof: 'verification' },
  'tokens.read': { on: 'account' },
  'tokens.create': { on: 'account', proof: 'verification' },
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
    proof: 'factor',
    tokens: 'none',
    revokesAccess: true,
    withoutSecondFactor: true,
  },
  'organization.edit': { on: 'organization', role: 'owner', revokesAccess: true },
  'organization.delete': {
    on: 'organization',
    role: 'owner',
    proof: 'verification',
    tokens: 'none',
    revokesAccess: true,
  },
  'members.read': { on: 'organization', role: 'viewer' },
  'members.remove': { on: 'organization', role: 'admin', proof: 'factor', revokesAccess: true },
  'members.changeRole': { on: 'organization', role: 'owner', proof: 'factor' },
  'members.resetPassword': {
    on: 'organization',
    role: 'owner',
    proof: 'verification',
    tokens: 'none',
  },
  'resetLinks.read': { on: 'organization', role: 'owner' },
  'resetLinks.withdraw': { on: 'organization', role: 'owner' },
  'invites.read': { on: 'organization', role: 'admin' },
  'invites.create': { on: 'organization', role: 'admin', proof: 'factor' },
  'invites.withdraw': { on: 'organization', role: 'admin' },
  'audit.read': { on: 'organization', role: 'admin' },
  'signInRules.read': { on: 'organization', role: 'admin' },
  // Rules can make anybody an owner, and draw in the accounts of a whole provider. The provider
  // belongs to the installation.
  'signInRules.edit': {
    on: 'organization',
    role: 'owner',
    requiresOperator: true,
    proof: 'verification',
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
    proof: 'verification',
    tokens: 'none',
  },
  'organizationTokens.withdraw': { on: 'organization', role: 'admin', tokens: 'none' },

  'project.read': { on: 'project', role: 'viewer' },
  'project.edit': { on: 'project', role: 'admin' },
  'project.delete': {
    on: 'project',
    role: 'owner',
    proof: 'verification',
    tokens: 'none',
    revokesAccess: true,
  },
  'keys.read': { on: 'project', role: 'admin' },
  'keys.create': { on: 'project', role: 'admin', proof: 'verification', tokens: 'none' },
  'keys.edit': { on: 'project', role: 'admin' },
  'keys.rotate': { on: 'project', role: 'admin', proof: 'verification', tokens: 'none' },
  'keys.revoke': { on: 'project', role: 'admin' },
  'channels.read': { on: 'project', role: 'viewer' },
  'channels.create': { on: 'project', role: 'member' },
  'channels.edit': { on: 'project', role: 'member' },
  'notifications.read': { on: 'project', role: 'viewer', tokens: 'personal' },
  'notifications.edit': { on: 'project', role: 'viewer', tokens: 'personal' },
  'events.read': { on: 'project', role: 'viewer' },
  'events.markRead': { on: 'project', role: 'viewer', tokens: 'personal' },
  'events.acknowledge': { on: 'project', role: 'member' },
  'events.answer': { on: 'project', role: 'member' },
  'onDuty.edit': { on: 'project', role: 'member' },
  'events.delete': { on: 'project', role: 'admin' },
  'deliveries.read': { on: 'project', role: 'admin' },
  'deliveries.replay': { on: 'project', role: 'admin' },
  'hooks.read': { on: 'project', role: 'viewer' },
  // The address is a credential.
  'hooks.create': { on: 'project', role: 'admin', proof: 'verification', tokens: 'none' },
  'hooks.rotate': { on: 'project', role: 'admin', proof: 'verification', tokens: 'none' },
  'hooks.edit': { on: 'project', role: 'admin' },
  'insights.read': { on: 'project', role: 'viewer' },
  'insights.edit': { on: 'project', role: 'member' },
  // Changes of a shared view also require the role member.
  'views.read': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.edit': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.setBell': { on: 'project', role: 'viewer', tokens: 'personal' },
  'views.markSeen': { on: 'project', role: 'viewer', tokens: 'personal' },
  'rules.read': { on: 'project', role: 'viewer' },
  'rules.preview': { on: 'project', role: 'member' },
  'rules.edit': { on: 'project', role: 'member' },
  'silences.read': { on: 'project', role: 'viewer' },
  'silences.edit': { on: 'project', role: 'member' },
  'heartbeats.read': { on: 'project', role: 'viewer' },
  'heartbeats.edit': { on: 'project', role: 'member' },
  'users.read': { on: 'project', role: 'viewer' },
  'users.editAliases': { on: 'project', role: 'member' },
  'users.erase': { on: 'project', role: 'admin', proof: 'verification', tokens: 'none' },
  'webhooks.read': { on: 'project', role: 'viewer' },
  'webhooks.readAttempts': { on: 'project', role: 'admin' },
  'webhooks.preview': { on: 'project', role: 'admin' },
  'webhooks.create': { on: 'project', role: 'admin', proof: 'verification' },
  // Requires verification, because it can send the events to another URL.
  'webhooks.edit': { on: 'project', role: 'admin', proof: 'verification' },
  'webhooks.rotate': { on: 'project', role: 'admin', proof: 'verification' },
  'webhooks.operate': { on: 'project', role: 'admin' },
  'webhooks.delete': { on: 'project', role: 'admin', proof: 'verification' },
} as const satisfies Record<string, Rule>
export type Action = keyof typeof ACTIONS

export type Rule = (
  | { on: 'anyone' | 'token' | 'account' | 'installation' }
  | {
      on: 'organization' | 'project'
      role: Role
      /** True if the account must also be an operator of the server. */
      requiresOperator?: boolean
    }
) & {
  /**
   * The proof that a session needs. `factor`: the passkey or the authenticator app of the account,
   * if it has one. `verification`: the same, and the password or a passkey within 10 minutes.
   */
  proof?: 'factor' | 'verification'
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

/** Returns whether `role` has all permissions of `needed`. */
export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Returns whether `action` can take access away. */
export function revokesAccess(action: Action): boolean {
  const rule: Rule = ACTIONS[action]
  return rule.revokesAccess ?? false
}

import { Fault } from '../errors.ts'

/** From the least to the most. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/**
 * Everything that can be done through /api: where, who may, and whether the password must have been typed within the
 * last 10 minutes, as for what shows a secret or destroys something (contract.md §12).
 */
export const ACTIONS = {
  'setup.read': { on: 'anyone' },
  'setup.complete': { on: 'anyone' },
  'session.create': { on: 'anyone', endsAccess: true },
  'session.end': { on: 'anyone', endsAccess: true },
  'reset.complete': { on: 'anyone', endsAccess: true },
  'invite.read': { on: 'anyone' },
  'invite.accept': { on: 'anyone' },

  'account.read': { on: 'person' },
  'account.edit': { on: 'person' },
  'account.verify': { on: 'person' },
  'account.changePassword': { on: 'person', endsAccess: true },
  'sessions.read': { on: 'person' },
  'sessions.end': { on: 'person', endsAccess: true },

  'push.read': { on: 'person' },
  'push.subscribe': { on: 'person' },
  'push.edit': { on: 'person' },
  'push.remove': { on: 'person' },
  'push.test': { on: 'person' },

  'server.read': { on: 'installation' },
  'organizations.create': { on: 'installation' },

  'organization.read': { on: 'organization', role: 'viewer' },
  'organization.leave': { on: 'organization', role: 'viewer', endsAccess: true },
  'organization.edit': { on: 'organization', role: 'owner' },
  'organization.delete': { on: 'organization', role: 'owner', isGuarded: true, endsAccess: true },
  'members.read': { on: 'organization', role: 'viewer' },
  'members.remove': { on: 'organization', role: 'admin', endsAccess: true },
  'members.changeRole': { on: 'organization', role: 'owner' },
  'members.resetPassword': { on: 'organization', role: 'owner', isGuarded: true },
  'invites.read': { on: 'organization', role: 'admin' },
  'invites.create': { on: 'organization', role: 'admin' },
  'invites.withdraw': { on: 'organization', role: 'admin' },
  'audit.read': { on: 'organization', role: 'admin' },
  'projects.create': { on: 'organization', role: 'admin' },

  'project.read': { on: 'project', role: 'viewer' },
  'project.edit': { on: 'project', role: 'admin' },
  'project.delete': { on: 'project', role: 'owner', isGuarded: true, endsAccess: true },
  'keys.read': { on: 'project', role: 'admin' },
  'keys.create': { on: 'project', role: 'admin', isGuarded: true },
  'keys.edit': { on: 'project', role: 'admin' },
  'keys.rotate': { on: 'project', role: 'admin', isGuarded: true },
  'keys.revoke': { on: 'project', role: 'admin' },
  'channels.read': { on: 'project', role: 'viewer' },
  'channels.edit': { on: 'project', role: 'member' },
  'notifications.read': { on: 'project', role: 'viewer' },
  'notifications.edit': { on: 'project', role: 'viewer' },
  'events.read': { on: 'project', role: 'viewer' },
  'events.markRead': { on: 'project', role: 'viewer' },
  'events.delete': { on: 'project', role: 'admin' },
  'deliveries.read': { on: 'project', role: 'admin' },
  'deliveries.replay': { on: 'project', role: 'admin' },
  'users.read': { on: 'project', role: 'viewer' },
  'users.editAliases': { on: 'project', role: 'member' },
  'users.erase': { on: 'project', role: 'admin', isGuarded: true },
  'webhooks.read': { on: 'project', role: 'viewer' },
  'webhooks.readAttempts': { on: 'project', role: 'admin' },
  'webhooks.create': { on: 'project', role: 'admin', isGuarded: true },
  // Guarded, because it can lead the events elsewhere.
  'webhooks.edit': { on: 'project', role: 'admin', isGuarded: true },
  'webhooks.rotate': { on: 'project', role: 'admin', isGuarded: true },
  'webhooks.operate': { on: 'project', role: 'admin' },
  'webhooks.delete': { on: 'project', role: 'admin', isGuarded: true },
} as const satisfies Record<string, Rule>
export type Action = keyof typeof ACTIONS

type Rule = (
  | { on: 'anyone' | 'person' | 'installation' }
  | { on: 'organization' | 'project'; role: Role; isGuarded?: boolean }
) & {
  /** Whether somebody may see less afterwards: then open sockets are looked through at once. */
  endsAccess?: boolean
}

/** Where an action takes place; that of `A` for one action. */
export type Place<A extends Action = Action> = (typeof ACTIONS)[A]['on']

/** Who asks; undefined for somebody who is not signed in. */
export interface Asking {
  isOperator: boolean
  /** Whether the password was typed within the last 10 minutes. */
  isVerified: boolean
}

/** What it is about: an organization, or a project of one. Without a role, its existence is none of their business. */
export interface Resource {
  kind: 'organization' | 'project'
  role: Role | undefined
}

/** Throws unless `person` may do `action` to `resource`: `signed_out`, `not_found`, `forbidden` or `verification_needed`. */
export function authorize(
  person: Asking | undefined,
  action: Action,
  resource: Resource | undefined,
): void {
  const rule: Rule = ACTIONS[action]
  if (rule.on === 'anyone') return
  if (!person) throw new Fault('signed_out', 'Sign in first')
  if (rule.on === 'person') return
  if (rule.on === 'installation') {
    if (!person.isOperator)
      throw new Fault('forbidden', 'Only the operator of the server may do this')
    return
  }
  if (resource?.kind !== rule.on || resource.role === undefined) {
    throw new Fault('not_found', `No ${rule.on} has this id`)
  }
  if (!isAtLeast(resource.role, rule.role)) {
    throw new Fault('forbidden', `This takes the role ${rule.role}; yours is ${resource.role}`)
  }
  if (rule.isGuarded) requireVerified(person)
}

/** Throws `verification_needed` unless the password was typed within the last 10 minutes. */
export function requireVerified({ isVerified }: Pick<Asking, 'isVerified'>): void {
  if (isVerified) return
  throw new Fault(
    'verification_needed',
    'Type your password again: it was not typed within the last 10 minutes',
  )
}

export function isAtLeast(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Whether somebody may see less once `action` is done. */
export function endsAccess(action: Action): boolean {
  const rule: Rule = ACTIONS[action]
  return rule.endsAccess ?? false
}

/** What was done, to be read between who did it and what it was done to. */
const ACTION_TEXTS = {
  'account.created': 'made the account',
  'account.edited': 'changed the account',
  'alias.added': 'added an alias',
  'alias.moved': 'moved an alias',
  'alias.removed': 'removed an alias',
  'channel.edited': 'changed the channel',
  'delivery.replayed': 'replayed a delivery',
  'event.deleted': 'deleted an event',
  'event.restored': 'brought an event back',
  'invite.created': 'made an invitation',
  'invite.withdrawn': 'withdrew an invitation',
  'key.created': 'made the API key',
  'key.edited': 'changed the API key',
  'key.revoked': 'revoked the API key',
  'key.rotated': 'rotated the API key',
  'member.joined': 'joined',
  'member.left': 'left',
  'member.removed': 'removed',
  'member.resetLinkCreated': 'made a reset link for',
  'member.resetLinkUsed': 'used the reset link for',
  'member.resetLinkWithdrawn': 'withdrew the reset link for',
  'member.roleChanged': 'changed the role of',
  'notifications.edited': 'changed their notifications',
  'organization.created': 'created the organization',
  'organization.deleted': 'deleted the organization',
  'organization.renamed': 'renamed the organization to',
  'owner.created': 'made the first owner’s account',
  'password.changed': 'changed the password',
  'password.refused': 'mistyped the password',
  'password.reset': 'set a new password for',
  'project.created': 'created the project',
  'project.deleted': 'deleted the project',
  'project.edited': 'changed the project',
  'push.edited': 'changed a device',
  'push.keyCreated': 'made the key that signs pushes',
  'push.keyLost': 'lost the key that signs pushes',
  'push.removed': 'removed a device',
  'push.renewed': 'renewed notifications on a device',
  'push.subscribed': 'turned notifications on',
  'push.tested': 'tested notifications',
  'push.unsubscribed': 'turned notifications off',
  'reset.created': 'made a reset link for',
  'reset.withdrawn': 'withdrew the reset link for',
  'server.backedUp': 'made a backup',
  'server.restored': 'restored a backup',
  'session.created': 'signed in',
  'session.ended': 'ended a session',
  'session.refused': 'failed to sign in as',
  'session.verified': 'typed the password again',
  'sessions.ended': 'signed out everywhere',
  'user.erased': 'erased a user',
  'webhook.created': 'made the webhook',
  'webhook.deleted': 'deleted the webhook',
  'webhook.disabled': 'disabled the webhook',
  'webhook.edited': 'changed the webhook',
  'webhook.enabled': 'enabled the webhook',
  'webhook.recovered': 'recovered events for the webhook',
  'webhook.resent': 'sent an attempt again to the webhook',
  'webhook.secretRotated': 'rotated the secret of the webhook',
  'webhook.tested': 'tested the webhook',
} as const satisfies Record<string, string>

/** Everything that the audit log tells of. */
export type AuditAction = keyof typeof ACTION_TEXTS

/** An action of the audit log in words; one that nobody has words for is said as it is. */
export function toActionText(action: string): string {
  return (ACTION_TEXTS as Readonly<Record<string, string>>)[action] ?? action
}

/** Every action that concerns a kind of thing, like `key`. */
export function listActionsOn(about: string): string[] {
  return Object.keys(ACTION_TEXTS).filter(action => action.startsWith(`${about}.`))
}

/** What else is known of a deed, in words: what is true by its name, what is false or nothing not at all. */
export function toDetailsText(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([name, value]) => name !== 'name' && value !== false && value !== null)
    .map(([name, value]) => {
      const words = toWords(name)
      return value === true ? words.replace(/^(is|has) /, '') : `${words} ${String(value)}`
    })
    .join(', ')
}

/** `overlapHours` as words. */
function toWords(name: string): string {
  return name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}

/** Every action of the audit log, as a predicate between its actor and its target. */
const ACTION_TEXTS = {
  'access.othersRefused': 'refused access to further callers',
  'access.refused': 'was refused access',
  'access.strangerRefused': 'refused access to an account that is not a member',
  'account.addressRefused': 'tried an e-mail address that is in use',
  'account.created': 'created the account',
  'account.deleted': 'deleted the account',
  'account.edited': 'changed the account',
  'account.proven': 'proved the e-mail address, which removed the earlier ways to sign in',
  'account.exported': 'exported the data of the account',
  'alias.added': 'added an alias',
  'alias.moved': 'moved an alias',
  'alias.removed': 'removed an alias',
  'audit.exported': 'exported the audit log',
  'channel.created': 'created the channel',
  'channel.edited': 'changed the channel',
  'connection.created': 'connected an identity',
  'connection.removed': 'removed the connection to an identity',
  'delivery.replayed': 'replayed a delivery',
  'event.acknowledged': 'acknowledged an event',
  'event.answered': 'answered the question of an event',
  'event.deleted': 'deleted an event',
  'event.expired': 'let the question of an event expire',
  'event.restored': 'restored an event',
  'hook.created': 'created an inbound hook',
  'hook.deleted': 'deleted an inbound hook',
  'hook.edited': 'changed an inbound hook',
  'hook.rotated': 'replaced the address of an inbound hook',
  'insights.cardCreated': 'added a card to the insights',
  'insights.cardDeleted': 'deleted a card of the insights',
  'insights.cardEdited': 'changed a card of the insights',
  'insights.reordered': 'reordered the insights',
  'heartbeat.created': 'created the heartbeat',
  'heartbeat.deleted': 'deleted the heartbeat',
  'heartbeat.edited': 'changed the heartbeat',
  'invite.addressRefused': 'tried to join with an e-mail address that is in use',
  'invite.created': 'created an invite',
  'invite.withdrawn': 'withdrew an invite',
  'key.created': 'created the API key',
  'key.edited': 'changed the API key',
  'key.revoked': 'revoked the API key',
  'key.rotated': 'rotated the API key',
  'member.joined': 'joined',
  'member.left': 'left',
  'member.removed': 'removed',
  'member.resetLinkCreated': 'created a reset link for',
  'member.resetLinkExpired': 'let the reset link expire for',
  'member.resetLinkUsed': 'used the reset link for',
  'member.resetLinkWithdrawn': 'withdrew the reset link for',
  'member.roleChanged': 'changed the role of',
  'notifications.edited': 'changed their notifications',
  'onDuty.edited': 'changed who is on duty for',
  'organization.created': 'created the organization',
  'organization.deleted': 'deleted the organization',
  'organization.renamed': 'renamed the organization to',
  'organization.secondFactorChanged': 'changed the required second factor of',
  'owner.created': 'created an owner account',
  'passkey.created': 'added a passkey',
  'passkey.disabled': 'disabled a copied passkey',
  'passkey.removed': 'removed a passkey',
  'passkey.renamed': 'renamed a passkey',
  'password.changed': 'changed the password',
  'password.refused': 'entered a wrong password',
  'password.removed': 'removed the password',
  'password.reset': 'set a new password for',
  'project.created': 'created the project',
  'project.deleted': 'deleted the project',
  'project.edited': 'changed the project',
  'provider.created': 'added a provider',
  'provider.deleted': 'deleted a provider',
  'provider.edited': 'changed a provider',
  'push.edited': 'changed a device',
  'push.keyCreated': 'created the key that signs pushes',
  'push.keyLost': 'lost the key that signs pushes',
  'push.removed': 'removed a device',
  'push.renewed': 'renewed notifications on a device',
  'push.subscribed': 'turned notifications on',
  'push.tested': 'tested notifications',
  'push.unsubscribed': 'turned notifications off',
  'recoveryCodes.created': 'created recovery codes',
  'recoveryCodes.used': 'used a recovery code',
  'reset.created': 'created a reset link for',
  'reset.expired': 'let the reset link expire for',
  'reset.withdrawn': 'withdrew the reset link for',
  'rule.created': 'created the rule',
  'rule.deleted': 'deleted the rule',
  'rule.edited': 'changed the rule',
  'secondFactor.added': 'added an authenticator app',
  'secondFactor.removed': 'removed the authenticator app',
  'server.backedUp': 'created a backup',
  'server.restored': 'restored a backup',
  'session.created': 'signed in',
  'session.ended': 'ended a session',
  'session.refused': 'failed to sign in as',
  'session.strengthened': 'added the second factor to the session',
  'session.verified': 'confirmed that it is them',
  'sessions.ended': 'signed out everywhere',
  'signInRules.edited': 'changed the sign-in rules',
  'silence.created': 'began the silence',
  'silence.ended': 'ended the silence',
  'token.created': 'created the token',
  'token.withdrawn': 'withdrew the token',
  'user.erased': 'erased a user',
  'view.created': 'saved a view',
  'view.deleted': 'deleted a view',
  'view.edited': 'changed a view',
  'webhook.created': 'created the webhook',
  'webhook.deleted': 'deleted the webhook',
  'webhook.disabled': 'disabled the webhook',
  'webhook.edited': 'changed the webhook',
  'webhook.enabled': 'enabled the webhook',
  'webhook.recovered': 'recovered events for the webhook',
  'webhook.resent': 'resent an attempt to the webhook',
  'webhook.secretRotated': 'rotated the secret of the webhook',
  'webhook.tested': 'tested the webhook',
} as const satisfies Record<string, string>

/** An action of the audit log. */
export type AuditAction = keyof typeof ACTION_TEXTS

/** Returns an action in words. An unknown action is returned unchanged. */
export function toActionText(action: string): string {
  return (ACTION_TEXTS as Readonly<Record<string, string>>)[action] ?? action
}

/** Returns all actions on one kind of object, such as `key`. */
export function listActionsOn(about: string): string[] {
  return Object.keys(ACTION_TEXTS).filter(action => action.startsWith(`${about}.`))
}

/**
 * Returns the details of an entry in words. True values appear as their name; false and null are
 * left out.
 */
export function toDetailsText(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([name, value]) => name !== 'name' && value !== false && value !== null)
    .map(([name, value]) => {
      const words = toWords(name)
      if (name === 'kind') return value === 'top' ? 'top values' : String(value)
      return value === true ? words.replace(/^(is|has) /, '') : `${words} ${String(value)}`
    })
    .join(', ')
}

/** Converts `overlapHours` to `overlap hours`. */
function toWords(name: string): string {
  return name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}

import { Fault } from '../../base/errors.ts'

/**
 * How sessions are made, and whether that proves more than one factor. A session that was confirmed
 * later with a passkey or a code counts as one that proved several. A reset link makes no session.
 */
export const SESSION_KINDS = {
  password: false,
  'password and code': true,
  'password and recovery code': true,
  passkey: true,
  proxy: false,
  provider: false,
  'provider that reports MFA': true,
  'setup link or invite': false,
} as const
export type SessionKind = keyof typeof SESSION_KINDS

/** The factors that an account can have: usable passkeys, and a confirmed authenticator app. */
export const FACTORS = ['none', 'passkey', 'app', 'passkey and app'] as const
export type Factors = (typeof FACTORS)[number]

/** The sessions that may do an action: every one, or those that proved more than one factor. */
type Sessions = 'every' | 'multi-factor'
type Row = Record<Factors, Sessions>

const ALWAYS: Row = { none: 'every', passkey: 'every', app: 'every', 'passkey and app': 'every' }
/** Only an account without a factor gets its first one from a session that proved none. */
const WITH_OWN_FACTOR: Row = {
  none: 'every',
  passkey: 'multi-factor',
  app: 'multi-factor',
  'passkey and app': 'multi-factor',
}

/**
 * Every action that changes how an account signs in, gives lasting access or destroys, and the
 * sessions that may do it for each set of factors of the account. It has every action that requires
 * a verification. Otherwise a stolen password, or an identity at the proxy or a provider, would
 * remove or replace the factor that it lacks: as an owner, also with the help of a member that it
 * made an owner.
 */
export const CREDENTIAL_ACTIONS = {
  'account.verify': ALWAYS,
  'account.verifyByPasskey': ALWAYS,
  'account.addSecondFactor': ALWAYS,
  'account.changePassword': WITH_OWN_FACTOR,
  'account.removePassword': WITH_OWN_FACTOR,
  // The first sign-in at a trusted provider or the proxy gives an account to the person who has its
  // address, and removes the earlier ways in. It removes no factor.
  'account.prove': WITH_OWN_FACTOR,
  'account.changeAddress': WITH_OWN_FACTOR,
  'account.export': WITH_OWN_FACTOR,
  'account.delete': WITH_OWN_FACTOR,
  'organization.leave': WITH_OWN_FACTOR,
  'organization.delete': WITH_OWN_FACTOR,
  'secondFactor.create': WITH_OWN_FACTOR,
  'secondFactor.confirm': WITH_OWN_FACTOR,
  'secondFactor.remove': WITH_OWN_FACTOR,
  'secondFactor.createCodes': WITH_OWN_FACTOR,
  'passkeys.read': ALWAYS,
  'passkeys.create': WITH_OWN_FACTOR,
  'passkeys.add': WITH_OWN_FACTOR,
  'passkeys.edit': ALWAYS,
  'passkeys.remove': WITH_OWN_FACTOR,
  'connections.create': WITH_OWN_FACTOR,
  'connections.remove': WITH_OWN_FACTOR,
  'sessions.read': ALWAYS,
  'sessions.end': ALWAYS,
  'tokens.read': ALWAYS,
  'tokens.create': WITH_OWN_FACTOR,
  'tokens.withdraw': ALWAYS,
  'organizationTokens.read': ALWAYS,
  'organizationTokens.create': WITH_OWN_FACTOR,
  'organizationTokens.withdraw': ALWAYS,
  'invites.create': WITH_OWN_FACTOR,
  'members.changeRole': WITH_OWN_FACTOR,
  'members.remove': WITH_OWN_FACTOR,
  'project.delete': WITH_OWN_FACTOR,
  'keys.create': WITH_OWN_FACTOR,
  'keys.rotate': WITH_OWN_FACTOR,
  'webhooks.create': WITH_OWN_FACTOR,
  'webhooks.edit': WITH_OWN_FACTOR,
  'webhooks.rotate': WITH_OWN_FACTOR,
  'webhooks.delete': WITH_OWN_FACTOR,
  'users.erase': WITH_OWN_FACTOR,
  // These give access to the accounts of others.
  'members.resetPassword': WITH_OWN_FACTOR,
  'signInRules.edit': WITH_OWN_FACTOR,
} as const satisfies Record<string, Row>
export type CredentialAction = keyof typeof CREDENTIAL_ACTIONS

/** The part of a session that the table depends on. */
export interface Proven {
  /** The factors of the account. */
  factors: Factors
  /** True if the session proved more than one factor. */
  isMultiFactor: boolean
}

/** Returns whether a session may do an action on credentials. */
export function isAllowedTo(action: CredentialAction, { factors, isMultiFactor }: Proven): boolean {
  return isMultiFactor || CREDENTIAL_ACTIONS[action][factors] === 'every'
}

/** Throws `second_factor_needed` unless a session may do an action on credentials. */
export function requireOwnFactor(action: CredentialAction, session: Proven): void {
  if (!isAllowedTo(action, session)) throw ownFactorNeeded()
}

/** Throws `second_factor_needed` if the account has a factor that its session did not prove. */
export function requireAnyFactor({ factors, isMultiFactor }: Proven): void {
  if (!isMultiFactor && factors !== 'none') throw ownFactorNeeded()
}

function ownFactorNeeded(): Fault {
  return new Fault(
    'second_factor_needed',
    'Your account has a passkey or an authenticator app. Confirm with it, or sign in with it.',
  )
}

export function isOnCredentials(action: string): action is CredentialAction {
  return Object.hasOwn(CREDENTIAL_ACTIONS, action)
}

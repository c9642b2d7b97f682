import { Fault } from '../../base/errors.ts'
import type { Admitted, Proven } from './caller.ts'
import {
  ACTIONS,
  isAtLeast,
  TOKEN_KINDS,
  type Action,
  type Role,
  type Rule,
  type TokenKind,
} from './permissions.ts'

/** The part of a request that a verification depends on. */
export type Verifiable = Pick<Admitted, 'isVerified' | 'session'>

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
 * unless a request may do `action` to `resource`.
 */
export function authorize(
  admitted: Admitted | undefined,
  action: Action,
  resource: Resource | undefined,
): void {
  const rule: Rule = ACTIONS[action]
  if (admitted?.token && !allowsToken(rule, admitted.token.kind)) {
    throw new Fault('forbidden', toTokenRefusal(rule))
  }
  if (rule.on === 'anyone') return
  if (!admitted) throw new Fault('signed_out', 'Sign in first')
  if (rule.on === 'token') {
    if (!admitted.token) throw new Fault('forbidden', 'Requires a management token')
    return
  }
  if (rule.on === 'account') return requireProof(admitted, rule)
  if (rule.on === 'installation') {
    if (!admitted.account.isOperator)
      throw new Fault('forbidden', 'Requires the operator of the server')
    return requireProof(admitted, rule)
  }
  if (resource?.kind !== rule.on || resource.role === undefined) {
    const isProject = rule.on === 'project'
    throw new Fault(
      'not_found',
      isProject ? 'No project has this id' : 'No organization has this id',
    )
  }
  if (admitted.needsSecondFactor && !rule.withoutSecondFactor) {
    throw new Fault(
      'second_factor_needed',
      'This organization requires a passkey or a code. Add one under Account, or sign in with it.',
    )
  }
  if (!isAtLeast(resource.role, rule.role)) {
    const { role: ownRole } = resource
    const whose = admitted.token ? "The token's" : 'Your'
    throw new Fault('forbidden', `Requires the ${rule.role} role. ${whose} role is ${ownRole}.`)
  }
  if (rule.requiresOperator && !admitted.account.isOperator) {
    throw new Fault('forbidden', 'Requires an owner who is an operator of the server')
  }
  if (rule.on === 'organization' && admitted.token?.isLimited) {
    throw new Fault('forbidden', 'This token is limited to projects. Use one without that limit.')
  }
  requireProof(admitted, rule)
}

/** Throws unless the session has proved what a rule requires. */
function requireProof(admitted: Verifiable, { proof }: Rule): void {
  if (proof === 'verification') requireVerified(admitted)
  else if (proof === 'factor' && admitted.session) requireOwnFactor(admitted.session)
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
  if (session) requireOwnFactor(session)
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
export function requireVerifiedFor(role: Role, admitted: Verifiable): void {
  if (isAtLeast(role, 'admin')) requireVerified(admitted)
}

/** Throws `second_factor_needed` if the account has a factor that its session did not prove. */
export function requireOwnFactor({ hasFactor, isMultiFactor }: Proven): void {
  if (isMultiFactor || !hasFactor) return
  throw new Fault(
    'second_factor_needed',
    'Your account has a passkey or an authenticator app. Confirm with it, or sign in with it.',
  )
}

import { writeAudit, type Actor } from '../audit/audit.ts'
import { endSessions } from '../guard/sessions.ts'
import { withdrawAllLinks } from '../sign-in/reset-links.ts'
import { removeOtherWaysIn } from '../sign-in/ways-in.ts'
import { toId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import { lockAccountByEmail } from '../sign-in/account.ts'
import { acceptInvite, createAccount } from '../organizations/joining.ts'
import { forgetDevices, signIn, type SignInRequest } from '../sign-in/sign-in.ts'
import { PROXY, type ProviderSettings } from '../../base/config/openid.ts'
import { Fault } from '../../base/errors.ts'
import { connect, findConnectedAccount, isConnectedTo } from './connections.ts'
import { applyRules, lockForSignIn } from './memberships.ts'
import { VisitProblem } from './flow.ts'
import type { Profile } from './profile.ts'
import { findRoles, type Visitor } from './rules.ts'

/** A person whom a provider has authenticated, or the proxy. */
export interface Authenticated {
  provider: Pick<ProviderSettings, 'name' | 'isTrusted'>
  profile: Omit<Profile, 'issuedAt'>
}

/** A sign-in of a person whom a provider or the proxy has authenticated. */
export interface VisitorSignIn {
  visit: SignInRequest & { actor: Actor }
  /** The secret of the invite to accept. */
  invite: string | null
  isInstalled: boolean
}

/**
 * Signs in the person of a profile. Returns Set-Cookie values. Returns `confirm` if an account has
 * the e-mail address, but must be signed in once before it is connected. Throws `VisitProblem`.
 *
 * 1. Issuer and subject identify a connected account, whatever its e-mail address is.
 * 2. Otherwise only an e-mail address that the provider has verified counts. An account with this
 *    address is connected at once by a trusted provider, unless it has another identity at the
 *    issuer, or `proveEmail` refuses. Its earlier ways in are removed. Otherwise it must be signed
 *    in first.
 * 3. A new account needs an invite, or a sign-in rule of an organization for the person.
 */
export async function signInVisitor(
  tx: Tx,
  { provider, profile }: Authenticated,
  options: VisitorSignIn,
): Promise<string[] | 'confirm'> {
  const { issuer, subject, email, groups } = profile
  if (!groups) throw new VisitProblem('groups')
  const visitor = { provider: provider.name, email, groups }
  await lockForSignIn(tx, visitor, { identity: profile, invite: options.invite })
  const accountId = await findConnectedAccount(tx, profile)
  if (accountId !== undefined)
    return enter(tx, { accountId, isNew: false, visitor, profile }, options)
  if (email === undefined) throw new VisitProblem('unverified')
  const existing = await lockAccountByEmail(tx, email)
  const actor = options.visit.actor
  if (existing) {
    if (await isConnectedTo(tx, existing.id, issuer)) throw new VisitProblem('otherIdentity')
    if (!provider.isTrusted) return 'confirm'
    if (!(await proveEmail(tx, toAccountActor(actor, existing.id), existing))) return 'confirm'
  }
  const entered =
    existing?.id ??
    (await admitNewcomer(
      tx,
      { visitor: { ...visitor, email }, profile, isProven: provider.isTrusted },
      options,
    ))
  await connect(tx, toAccountActor(actor, entered), entered, {
    issuer,
    subject,
    provider: provider.name,
  })
  return enter(tx, { accountId: entered, isNew: !existing, visitor, profile }, options)
}

/** Returns the identity of the person whose e-mail address the proxy has sent. */
export function atProxy(email: string): Authenticated {
  return {
    provider: PROXY,
    profile: {
      issuer: PROXY.issuer,
      subject: email,
      email,
      name: undefined,
      groups: [],
      sid: undefined,
      authTime: undefined,
      isMultiFactor: false,
    },
  }
}

interface Entered {
  accountId: string
  isNew: boolean
  visitor: Visitor
  profile: Authenticated['profile']
}

/** Accepts the invite, applies the rules, and creates the session. */
async function enter(
  tx: Tx,
  { accountId, isNew, visitor, profile }: Entered,
  { visit, invite, isInstalled }: VisitorSignIn,
): Promise<string[]> {
  if (invite !== null && !isNew)
    await accept(tx, accountId, invite, toAccountActor(visit.actor, accountId))
  await applyRules(tx, { accountId, visitor, from: visit })
  const { sessionId, cookies: kept } = await signIn(tx, visit, {
    accountId,
    method: visitor.provider === PROXY.name ? 'proxy' : 'openid',
    isInstalled,
    isMultiFactor: profile.isMultiFactor,
  })
  if (visitor.provider === PROXY.name) return kept
  const { issuer, subject, sid, authTime } = profile
  await tx`
    insert into openid_sessions (session_id, provider, issuer, subject, sid)
    values (${sessionId}, ${visitor.provider}, ${issuer}, ${subject}, ${sid ?? null})
  `
  // An old sign-in at the provider does not confirm that the person is present now.
  await tx`
    update sessions set verified_at = least(now(), to_timestamp(${authTime ?? null}::float8))
    where id = ${sessionId}
  `
  return kept
}

/**
 * Gives an account to the person who has its e-mail address, as a trusted provider or the proxy
 * says. Somebody else may have entered the address before. So the first time removes everything
 * that signs the account in, and ends its sessions, its invites and its reset links. The caller has
 * locked the account and its organizations.
 *
 * Returns false, and changes nothing, if the account is an operator's, has a factor, or belongs to
 * an organization that requires one, to which it would give this person. It must be signed in
 * first.
 */
async function proveEmail(
  tx: Tx,
  actor: Actor,
  { id: accountId, isOperator }: { id: string; isOperator: boolean },
): Promise<boolean> {
  const [{ is_protected: isProtected }] = await tx<[{ is_protected: boolean }]>`
    select has_factor(${accountId}) or exists (
      select
      from memberships m
        join organizations o on o.id = m.organization_id and o.deleted_at is null
      where m.account_id = ${accountId} and o.requires_second_factor
    ) as is_protected
  `
  if (isOperator || isProtected) return false
  const proven = await tx`
    update accounts set is_email_proven = true, password_hash = null
    where id = ${accountId} and not is_email_proven
  `
  if (proven.count === 0) return true
  await removeOtherWaysIn(tx, actor, accountId)
  await withdrawAllLinks(tx, actor, accountId)
  const sessionsEnded = await endSessions(tx, accountId)
  await forgetDevices(tx, accountId)
  await writeAudit(tx, actor, {
    action: 'account.proven',
    target: toId('per', accountId),
    details: { sessionsEnded },
  })
  return true
}

/** A person without an account. `isProven` is the `is_email_proven` of the account to create. */
interface Newcomer {
  visitor: Visitor & { email: string }
  profile: Authenticated['profile']
  isProven: boolean
}

/** Creates the account of a person who has an invite, or for whom an organization has a rule. */
async function admitNewcomer(
  tx: Tx,
  { visitor, profile, isProven }: Newcomer,
  { visit: { actor }, invite }: VisitorSignIn,
): Promise<string> {
  const { email } = visitor
  if (invite === null && (await findRoles(tx, visitor)).size === 0)
    throw new VisitProblem('unknown')
  const name = profile.name ?? email.split('@')[0] ?? email
  const accountId = await createAccount(tx, actor, { name, email, hash: null, isProven })
  // Another request has just created it.
  if (accountId === undefined) throw new VisitProblem('expired')
  if (invite !== null) await accept(tx, accountId, invite, toAccountActor(actor, accountId))
  return accountId
}

async function accept(tx: Tx, accountId: string, token: string, actor: Actor): Promise<void> {
  try {
    await acceptInvite(tx, accountId, { token, actor })
  } catch (error) {
    throw error instanceof Fault ? new VisitProblem('invite') : error
  }
}

function toAccountActor({ address, userAgent }: Actor, accountId: string): Actor {
  return { kind: 'account', accountId, address, userAgent }
}

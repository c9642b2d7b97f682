import { writeAudit, type Actor } from '../audit/audit.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { parseEmail } from '../../base/config/values.ts'
import { Fault } from '../../base/errors.ts'
import { InvalidRequest, invalidField } from '../../http/validation.ts'
import { newId, toId } from '../../base/ids.ts'
import { lockAccount } from '../sign-in/account.ts'
import { limitNewAccounts } from '../sign-in/address-tries.ts'
import { checkPassword, hashPassword, requirePasswords } from '../sign-in/credentials.ts'
import { deleteInvite, findInvite, lockInvite, type LiveInvite } from './invites.ts'
import { withdrawLinksOfMember } from '../sign-in/reset-links.ts'
import { toName } from '../guard/schema.ts'
import type { OrganizationCall } from './organizations.ts'
import type { Role } from '../guard/permissions.ts'
import type { AcceptInviteBody, JoinedOrganization } from './schema.ts'
import type { AdmittedSession } from '../guard/sessions.ts'
import { signIn, type SignInRequest } from '../sign-in/sign-in.ts'

export const MAX_MEMBERS = 1_000

/** An account to create when accepting an invite. */
export interface NewAccount {
  name: string
  email: string
  password: string
}

/** Returns the new account that a body describes. Throws `InvalidRequest` if fields are missing. */
export function toNewAccount({ name, email, password }: AcceptInviteBody): NewAccount {
  if (name !== undefined && email !== undefined && password !== undefined) {
    return { name: toName(name), email: parseEmail(email) ?? '', password }
  }
  throw new InvalidRequest(
    Object.entries({ name, email, password })
      .filter(([, value]) => value === undefined)
      .map(([field]) => ({ path: [field], code: 'required', message: 'Required' })),
  )
}

/** Adds the signed-in account to the organization. Throws `not_found` unless the invite is open. */
export async function joinWithAccount(
  tx: Tx,
  { account, session }: AdmittedSession,
  { token, actor }: { token: string; actor: Actor },
): Promise<JoinedOrganization> {
  const joined = await acceptInvite(tx, account.id, { token, actor })
  if (!joined) throw new Fault('conflict', 'You are already a member of this organization')
  // A concurrent password reset may have ended the session.
  const [live] = await tx`select from sessions where id = ${session.id}`
  if (!live) throw new Fault('signed_out', 'Sign in first')
  return joined
}

/** Creates an account, adds it to the organization, and signs it in. Returns Set-Cookie values. */
export async function joinWithNewAccount(
  pool: Pool,
  newAccount: NewAccount,
  { token, visit }: { token: string; visit: SignInRequest & { actor: Actor } },
): Promise<{ joined: JoinedOrganization; cookies: string[] }> {
  const { name, email, password } = newAccount
  async function check(sql: Queryable, invite: LiveInvite | undefined): Promise<LiveInvite> {
    if (!invite) throw inviteNotFound()
    checkAddress(invite, email)
    await requireRoom(sql, invite.organizationId)
    await limitNewAccounts(sql, invite.organizationId)
    return invite
  }
  // Hashing is expensive, so what is refused is refused first. It is checked again below.
  const { organizationId } = await pool.run(async sql => {
    await requirePasswords(sql)
    return check(sql, await findInvite(sql, token))
  })
  checkPassword(password, { email, name })
  const hash = await hashPassword(password, organizationId)
  const done = await transact(pool, async tx => {
    const invite = await check(tx, await lockInvite(tx, token))
    // Nothing before this point depends on other accounts, so only the limited answer tells of one.
    const accountId = await createAccount(tx, visit.actor, { name, email, hash })
    if (accountId === undefined) {
      await writeAudit(tx, visit.actor, { action: 'invite.addressRefused', organizationId })
      return undefined
    }
    await deleteInvite(tx, token)
    const joined = await join(tx, invite, accountId, { ...visit.actor, kind: 'account', accountId })
    const signedIn = await signIn(tx, visit, { accountId, method: 'link' })
    return { joined, cookies: signedIn.cookies }
  })
  if (done) return done
  throw new Fault(
    'conflict',
    'An account with this e-mail address exists. Sign in, then open the link again.',
  )
}

/**
 * Creates an account, without a password if `hash` is null. Returns its uuid; undefined if another
 * account has the e-mail address.
 */
export async function createAccount(
  tx: Tx,
  actor: Actor,
  {
    name,
    email,
    hash,
    isProven = false,
  }: { name: string; email: string; hash: string | null; isProven?: boolean },
): Promise<string | undefined> {
  const { uuid, id } = newId('per')
  const inserted = await tx`
    insert into accounts (id, name, email, password_hash, is_email_proven)
    values (${uuid}, ${name}, ${email}, ${hash}, ${isProven})
    on conflict (email) do nothing
  `
  if (inserted.count === 0) return undefined
  await writeAudit(tx, actor, { action: 'account.created', target: id })
  return uuid
}

/**
 * Adds an account to the organization of an invite. Returns undefined if it is a member: an invite
 * changes no role, and stays open for another account. Throws `not_found` unless the invite is
 * open, and `forbidden` if it is for another e-mail address. Locks the organization, then the
 * account.
 */
export async function acceptInvite(
  tx: Tx,
  id: string,
  { token, actor }: { token: string; actor: Actor },
): Promise<JoinedOrganization | undefined> {
  const invite = await lockInvite(tx, token)
  if (!invite) throw inviteNotFound()
  const { email } = await lockAccount(tx, id)
  if (invite.email !== null && invite.email !== email) {
    throw new Fault('forbidden', `This invite is for another e-mail address than ${email}`)
  }
  const member = await tx`
    select from memberships
    where organization_id = ${invite.organizationId} and account_id = ${id}
  `
  if (member.count > 0) return undefined
  await requireRoom(tx, invite.organizationId)
  await deleteInvite(tx, token)
  return join(tx, invite, id, actor)
}

export function inviteNotFound(): Fault {
  return new Fault(
    'not_found',
    'This invite was used, has expired or was withdrawn. Ask for another one.',
  )
}

async function join(
  tx: Tx,
  { organizationId, organization, role }: LiveInvite,
  accountId: string,
  actor: Actor,
): Promise<JoinedOrganization> {
  await tx`
    insert into memberships (organization_id, account_id, role)
    values (${organizationId}, ${accountId}, ${role})
  `
  await announceMember(tx, { organizationId, actor }, { accountId, role })
  return { organization: { id: toId('org', organizationId), name: organization.name }, role }
}

/** Records a new membership. It ends reset links whose creators are no longer allowed them. */
export async function announceMember(
  tx: Tx,
  { organizationId, actor }: Pick<OrganizationCall, 'organizationId' | 'actor'>,
  { accountId, ...details }: { accountId: string; role: Role; provider?: string },
): Promise<void> {
  await withdrawLinksOfMember(tx, actor, accountId)
  const target = toId('per', accountId)
  await writeAudit(tx, actor, { action: 'member.joined', organizationId, target, details })
}

/** Throws `conflict` if an organization is full. The caller has locked the organization. */
async function requireRoom(sql: Queryable, organizationId: string): Promise<void> {
  const [{ members }] = await sql<[{ members: number }]>`
    select count(*)::int as members from memberships where organization_id = ${organizationId}
  `
  if (members < MAX_MEMBERS) return
  throw new Fault('conflict', `An organization can have at most ${MAX_MEMBERS} members`)
}

function checkAddress(invite: LiveInvite, email: string): void {
  if (invite.email === null || invite.email === email) return
  throw invalidField('email', 'invalid_value', 'This invite is for another e-mail address')
}

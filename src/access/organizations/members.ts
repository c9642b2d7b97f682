import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { writeAudit } from '../audit/audit.ts'
import { requireVerifiedFor } from '../guard/authorize.ts'
import type { Role } from '../guard/permissions.ts'
import type { Member } from './schema.ts'
import { lockOwnAccount, toAccountInfo } from '../sign-in/account.ts'
import { createOwnersResetLink, lockMemberships, type ResetLink } from '../sign-in/reset-links.ts'
import { withdrawDisallowed } from './invites.ts'
import { lockOrganization, lockRole, type OrganizationCall } from './organizations.ts'

/** Returns a page of an organization's members, oldest account first. */
export async function listMembers(
  sql: Queryable,
  organizationId: string,
  query: PageQuery,
): Promise<Page<Member>> {
  const { after, rows } = parsePageQuery('per', query)
  const where = after ? sql`and m.account_id > ${after}` : sql``
  const members = await selectMembers(sql, organizationId, { where, limit: rows })
  return toPage(members, query, ({ person }) => person.id)
}

/**
 * Changes the role of a member. Throws `conflict` for the last owner, and `verification_needed` for
 * a new admin or owner.
 */
export async function changeRole(
  tx: Tx,
  call: OrganizationCall,
  { id, role }: { id: string; role: Role },
): Promise<Member> {
  await lockOrganization(tx, call, 'members.changeRole')
  const { organizationId, admitted } = call
  const { accountId, member } = await getMember(tx, organizationId, id)
  if (member.role === role) return member
  requireVerifiedFor(role, admitted)
  if (member.role === 'owner') await requireOtherOwner(tx, organizationId, accountId)
  await setRole(tx, call, { accountId, from: member.role, to: role })
  return { ...member, role }
}

/** Stores the new role of a member. The caller has locked the organization. */
export async function setRole(
  tx: Tx,
  call: Pick<OrganizationCall, 'organizationId' | 'actor'>,
  { accountId, ...details }: { accountId: string; from: Role; to: Role; provider?: string | null },
): Promise<void> {
  const { organizationId, actor } = call
  await tx`
    update memberships set role = ${details.to}
    where organization_id = ${organizationId} and account_id = ${accountId}
  `
  await withdrawDisallowed(tx, call, accountId)
  const target = toId('per', accountId)
  await writeAudit(tx, actor, { action: 'member.roleChanged', organizationId, target, details })
}

/** Removes a member, whose next request is refused. Only owners can remove an owner. */
export async function removeMember(tx: Tx, call: OrganizationCall, id: string): Promise<void> {
  const ownRole = await lockOrganization(tx, call, 'members.remove')
  if (id === toId('per', call.admitted.account.id)) {
    throw new Fault('conflict', 'You cannot remove yourself. Leave the organization instead.')
  }
  const { accountId, member } = await getMember(tx, call.organizationId, id)
  if (member.role === 'owner' && ownRole !== 'owner') {
    throw new Fault('forbidden', 'Only owners can remove an owner')
  }
  await endMembership(tx, call, { accountId, role: member.role, action: 'member.removed' })
}

/** Ends the caller's own membership. Throws `conflict` for the last owner. */
export async function leaveOrganization(tx: Tx, call: OrganizationCall): Promise<void> {
  const role = await lockOrganization(tx, call, 'organization.leave')
  const accountId = call.admitted.account.id
  if (role === 'owner') await requireOtherOwner(tx, call.organizationId, accountId)
  await endMembership(tx, call, { accountId, role, action: 'member.left' })
}

/**
 * Creates a link that resets a member's password. Throws `forbidden` in the cases of
 * `createOwnersResetLink`.
 */
export async function createMemberResetLink(
  tx: Tx,
  call: OrganizationCall,
  id: string,
): Promise<ResetLink> {
  // The own account is locked with the other one, in the order of their ids.
  await lockRole(tx, call, 'members.resetPassword')
  const { organizationId, admitted, actor } = call
  const { accountId } = await getMember(tx, organizationId, id)
  if (accountId === admitted.account.id) {
    throw new Fault(
      'conflict',
      'This is your own account. Change your password on the account page.',
    )
  }
  await lockMemberships(tx, accountId, admitted.account.id)
  await lockOwnAccount(tx, admitted)
  const creator = { accountId: admitted.account.id, organizationId }
  return createOwnersResetLink(tx, actor, { accountId, creator })
}

interface EndedMembership {
  accountId: string
  role: Role
  action: 'member.removed' | 'member.left'
  /** The provider whose rules ended it. */
  provider?: string | null
}

/** Ends a membership. The caller has locked the organization. */
export async function endMembership(
  tx: Tx,
  call: Pick<OrganizationCall, 'organizationId' | 'actor'>,
  { accountId, role, action, provider }: EndedMembership,
): Promise<void> {
  const { organizationId, actor } = call
  await tx`
    delete from memberships where organization_id = ${organizationId} and account_id = ${accountId}
  `
  await withdrawDisallowed(tx, call, accountId)
  const target = toId('per', accountId)
  const details = { role, ...(provider && { provider }) }
  await writeAudit(tx, actor, { action, organizationId, target, details })
}

export interface Membership {
  organizationId: string
  role: Role
  /** The provider whose rules gave it. */
  provider: string | null
}

/** Returns the memberships of an account, by the uuid of the organization. */
export async function listMemberships(sql: Queryable, accountId: string): Promise<Membership[]> {
  return await sql<Membership[]>`
    select m.organization_id as "organizationId", m.role, m.provider
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.account_id = ${accountId}
    order by m.organization_id
  `
}

/** Locks organizations until the transaction ends, in the order of every change of members. */
export async function lockOrganizations(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx`
    select from organizations where id = any(${toArray(ids)}::uuid[]) order by id for no key update
  `
}

/** Returns the member with a public id. Throws `not_found`. */
async function getMember(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<{ accountId: string; member: Member }> {
  const accountId = parseId('per', id)
  const where = tx`and m.account_id = ${accountId ?? null}`
  const [member] = await selectMembers(tx, organizationId, { where, limit: 1 })
  if (accountId && member) return { accountId, member }
  throw new Fault('not_found', 'No member of the organization has this id')
}

async function selectMembers(
  sql: Queryable,
  organizationId: string,
  { where, limit }: { where: Fragment; limit: number },
): Promise<Member[]> {
  const rows = await sql<
    {
      id: string
      name: string
      email: string
      is_operator: boolean
      role: Role
      joined_at: Date
      last_seen_at: Date | null
    }[]
  >`
    select
      p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
      (select max(s.last_seen_at) from sessions s where s.account_id = p.id) as last_seen_at
    from memberships m
      join accounts p on p.id = m.account_id
    where m.organization_id = ${organizationId} ${where}
    order by m.account_id
    limit ${limit}
  `
  return rows.map(({ id, name, email, role, ...row }) => ({
    person: toAccountInfo({ id, name, email, isOperator: row.is_operator }),
    role,
    joinedAt: row.joined_at.toISOString(),
    lastSeenAt: row.last_seen_at?.toISOString() ?? null,
  }))
}

/** Throws `conflict` unless the organization has another owner. */
async function requireOtherOwner(tx: Tx, organizationId: string, accountId: string): Promise<void> {
  if (await hasOtherOwner(tx, organizationId, accountId)) return
  throw new Fault(
    'conflict',
    'An organization needs at least one owner. Make another member an owner first.',
  )
}

/** Returns whether an organization has another owner than an account. */
export async function hasOtherOwner(
  tx: Tx,
  organizationId: string,
  accountId: string,
): Promise<boolean> {
  const [other] = await tx`
    select
    from memberships
    where organization_id = ${organizationId} and role = 'owner' and account_id <> ${accountId}
    limit 1
  `
  return other !== undefined
}

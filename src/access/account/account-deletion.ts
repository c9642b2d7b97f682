import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import type { AdmittedSession } from '../guard/sessions.ts'
import { withdrawDisallowed } from '../organizations/invites.ts'
import { listMemberships, lockOrganizations, type Membership } from '../organizations/members.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { withdrawLinksOfMember, withdrawResetLinks } from '../sign-in/reset-links.ts'

/** The most organizations that an error names. */
const MAX_NAMES = 5

/**
 * Deletes the caller's account, with its sessions, devices, settings, invites and reset links. The
 * audit logs keep its id, and its name in the entry `account.deleted`. Throws `conflict` for the
 * last owner of an organization, and for the last operator of the installation, and the errors of
 * `lockOwnAccount`.
 */
export async function deleteAccount(
  tx: Tx,
  { admitted, actor }: { admitted: AdmittedSession; actor: Actor },
): Promise<void> {
  const { id, name } = admitted.account
  const memberships = await lockMemberships(tx, id)
  await lockOwnAccount(tx, admitted)
  await requireOtherOwners(tx, id)
  await requireOtherOperator(tx, id)
  await tx`delete from memberships where account_id = ${id}`
  for (const { organizationId } of memberships) {
    await withdrawDisallowed(tx, { organizationId, actor }, id)
  }
  await withdrawLinksOfMember(tx, actor, id)
  await withdrawResetLinks(tx, actor, id)
  const target = toId('per', id)
  for (const { organizationId, role } of memberships) {
    const details = { name, role }
    await writeAudit(tx, actor, { action: 'account.deleted', organizationId, target, details })
  }
  await writeAudit(tx, actor, { action: 'account.deleted', target, details: { name } })
  // The foreign keys of its other rows delete them, or clear their reference.
  await tx`delete from accounts where id = ${id}`
}

/**
 * Locks an account and its organizations until the transaction ends, in the order of every change
 * of members. Returns its memberships.
 */
async function lockMemberships(tx: Tx, accountId: string): Promise<Membership[]> {
  const before = await listMemberships(tx, accountId)
  const ids = before.map(({ organizationId }) => organizationId)
  await lockOrganizations(tx, ids)
  // Also locks the other operators, so that two of them cannot leave at once.
  const locked = await tx<{ id: string }[]>`
    select id
    from accounts
    where id = ${accountId}
      or is_operator and exists (select from accounts where id = ${accountId} and is_operator)
    order by id
    for update
  `
  if (!locked.some(({ id }) => id === accountId)) throw new Fault('signed_out', 'Sign in first')
  const memberships = await listMemberships(tx, accountId)
  if (memberships.every(({ organizationId }) => ids.includes(organizationId))) return memberships
  throw new Fault('conflict', 'You have just joined an organization. Try again.')
}

/** Throws `conflict` if the account is the last owner of organizations, and names them. */
async function requireOtherOwners(tx: Tx, accountId: string): Promise<void> {
  const owned = await tx<{ name: string }[]>`
    select o.name
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.account_id = ${accountId} and m.role = 'owner' and not exists (
      select
      from memberships other
      where other.organization_id = m.organization_id and other.role = 'owner'
        and other.account_id <> ${accountId}
    )
    order by o.id
    limit ${MAX_NAMES + 1}
  `
  if (owned.length === 0) return
  const names = owned.slice(0, MAX_NAMES).map(({ name }) => `"${name}"`)
  if (owned.length > MAX_NAMES) names.push('others')
  throw new Fault(
    'conflict',
    `You are the only owner of ${names.join(', ')}. Make another member an owner, or delete the organization.`,
  )
}

/** Throws `conflict` if the account is the last operator. */
async function requireOtherOperator(tx: Tx, accountId: string): Promise<void> {
  const [found] = await tx<[{ is_last: boolean }]>`
    select is_operator and not exists (
      select from accounts other where other.is_operator and other.id <> ${accountId}
    ) as is_last
    from accounts
    where id = ${accountId}
  `
  if (!found.is_last) return
  throw new Fault(
    'conflict',
    'You are the only operator of this server. Create another one with `tidings owner create` on its machine.',
  )
}

import { SERVER, type Actor } from '../audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import { findInvite } from '../organizations/invites.ts'
import { announceMember, MAX_MEMBERS } from '../organizations/joining.ts'
import {
  endMembership,
  hasOtherOwner,
  listMemberships,
  lockOrganizations,
  setRole,
  type Membership,
} from '../organizations/members.ts'
import type { Role } from '../guard/permissions.ts'
import type { Identity } from './connections.ts'
import { findRoles, type Visitor } from './rules.ts'

interface Arrival {
  identity: Pick<Identity, 'issuer' | 'subject'>
  /** The secret of an invite. */
  invite: string | null
}

/**
 * Locks the organizations that a sign-in can change, in the order of every change of members: they
 * come before the account. It has the identity or the e-mail address.
 */
export async function lockForSignIn(
  tx: Tx,
  visitor: Visitor,
  { identity, invite }: Arrival,
): Promise<void> {
  const roles = await findRoles(tx, visitor)
  const invited = invite === null ? undefined : await findInvite(tx, invite)
  const ids = [...roles.keys(), ...(invited ? [invited.organizationId] : [])]
  await tx`
    select
    from organizations
    where id = any(${toArray(ids)}::uuid[]) or id in (
      select m.organization_id
      from memberships m
      where m.account_id in (
        select account_id
        from openid_connections
        where issuer = ${identity.issuer} and subject = ${identity.subject}
        union all
        select id from accounts where email = ${visitor.email ?? null}
      )
    )
    order by id
    for no key update
  `
}

/**
 * Brings the memberships of an account in line with the sign-in rules for a visitor.
 *
 * Only memberships that rules of the same provider gave are changed or ended; the last owner of an
 * organization stays. New ones are for accounts without any other membership: the members of one
 * organization cannot be drawn into another one by its rules.
 */
export async function applyRules(
  tx: Tx,
  { accountId, visitor, from }: { accountId: string; visitor: Visitor; from: Place },
): Promise<void> {
  const { provider } = visitor
  const roles = await findRoles(tx, visitor)
  const seen = await listMemberships(tx, accountId)
  const touched = [...roles.keys(), ...seen.map(({ organizationId }) => organizationId)]
  // Most are locked already. Rules and memberships may have changed meanwhile.
  await lockOrganizations(tx, touched)
  const memberships = await listMemberships(tx, accountId)
  for (const membership of memberships) {
    if (membership.provider !== provider) continue
    await changeMembership(tx, accountId, membership, roles.get(membership.organizationId))
  }
  if (memberships.some(membership => membership.provider !== provider)) return
  const joined = new Set(memberships.map(({ organizationId }) => organizationId))
  for (const [organizationId, role] of [...roles].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (joined.has(organizationId)) continue
    await join(tx, { accountId, organizationId, role, provider }, from)
  }
}

/** The client that signs in, for the audit log. */
type Place = Pick<Actor, 'address' | 'userAgent'>

/** Gives the role of the rules; without one, ends the membership. */
async function changeMembership(
  tx: Tx,
  accountId: string,
  { organizationId, role: before, provider }: Membership,
  role: Role | undefined,
): Promise<void> {
  if (role === before) return
  if (before === 'owner' && !(await hasOtherOwner(tx, organizationId, accountId))) return
  if (role === undefined) {
    const ended = { accountId, role: before, action: 'member.removed' as const, provider }
    return endMembership(tx, { organizationId, actor: SERVER }, ended)
  }
  const call = { organizationId, actor: SERVER }
  await setRole(tx, call, { accountId, from: before, to: role, provider })
}

async function join(
  tx: Tx,
  joined: { accountId: string; organizationId: string; role: Role; provider: string },
  from: Place,
): Promise<void> {
  const { accountId, organizationId, role, provider } = joined
  const inserted = await tx`
    insert into memberships (organization_id, account_id, role, provider)
    select ${organizationId}, ${accountId}, ${role}, ${provider}
    where (select count(*) from memberships where organization_id = ${organizationId}) < ${MAX_MEMBERS}
  `
  if (inserted.count === 0) return
  const actor: Actor = { kind: 'account', accountId, ...from }
  await announceMember(tx, { organizationId, actor }, { accountId, role, provider })
}

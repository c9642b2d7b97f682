import { writeAudit } from '../audit/audit.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { parseId, toId } from '../ids.ts'
import { toPerson } from './account.ts'
import { withdrawInvitesOf } from './invites.ts'
import type { Member } from './organization-schema.ts'
import { lockOrganization, type OrganizationCall } from './organizations.ts'
import type { Role } from './permissions.ts'
import { createResetLink } from './resets.ts'

interface Row {
  id: string
  name: string
  email: string
  is_operator: boolean
  role: Role
  joined_at: Date
  last_seen_at: Date | null
}

/** A page of an organization's members, in the order in which their accounts were made. */
export async function listMembers(
  sql: Queryable,
  organizationId: string,
  query: PageQuery,
): Promise<Page<Member>> {
  const { after, rows: limit } = toSlice('per', query)
  const rows = await sql<Row[]>`
    select
      p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
      (select max(s.last_seen_at) from sessions s where s.person_id = p.id) as last_seen_at
    from memberships m
      join people p on p.id = m.person_id
    where m.organization_id = ${organizationId} ${after ? sql`and m.person_id > ${after}` : sql``}
    order by m.person_id
    limit ${limit}
  `
  return toPage(rows.map(toMember), query, ({ person }) => person.id)
}

/** Gives a member another role. The last owner stays one. */
export async function changeRole(
  tx: Tx,
  call: OrganizationCall,
  { id, role }: { id: string; role: Role },
): Promise<Member> {
  await lockOrganization(tx, call, 'members.changeRole')
  const { organizationId } = call
  const personId = toPersonId(id)
  const before = await getMember(tx, organizationId, personId)
  if (before.role === role) return before
  if (before.role === 'owner') await checkOwnerStays(tx, organizationId, personId)
  await tx`
    update memberships set role = ${role}
    where organization_id = ${organizationId} and person_id = ${personId}
  `
  await withdrawInvitesOf(tx, organizationId, personId)
  await writeAudit(tx, call.actor, {
    action: 'member.roleChanged',
    organizationId,
    target: id,
    details: { from: before.role, to: role },
  })
  return { ...before, role }
}

/** Takes a member out: they are refused from their next request on. Only owners remove owners. */
export async function removeMember(tx: Tx, call: OrganizationCall, id: string): Promise<void> {
  const ownRole = await lockOrganization(tx, call, 'members.remove')
  const personId = toPersonId(id)
  if (personId === call.admitted.person.id) {
    throw new Fault('conflict', 'Nobody removes themselves: leave the organization instead')
  }
  const { role } = await getMember(tx, call.organizationId, personId)
  if (role === 'owner' && ownRole !== 'owner') {
    throw new Fault('forbidden', 'Only an owner removes an owner')
  }
  await endMembership(tx, call, personId)
  await writeAudit(tx, call.actor, {
    action: 'member.removed',
    organizationId: call.organizationId,
    target: id,
    details: { role },
  })
}

/** Takes whoever asks out of the organization; its last owner has to stay. */
export async function leaveOrganization(tx: Tx, call: OrganizationCall): Promise<void> {
  const role = await lockOrganization(tx, call, 'organization.leave')
  const { organizationId } = call
  const personId = call.admitted.person.id
  if (role === 'owner') await checkOwnerStays(tx, organizationId, personId)
  await endMembership(tx, call, personId)
  await writeAudit(tx, call.actor, {
    action: 'member.left',
    organizationId,
    target: toId('per', personId),
    details: { role },
  })
}

/**
 * Makes a link with which a member sets a new password. It hands over the whole account, and what that opens elsewhere:
 * so it takes an owner of every organization that the member belongs to, and for the operator another operator.
 */
export async function createMemberResetLink(
  tx: Tx,
  call: OrganizationCall,
  id: string,
): Promise<{ token: string; expiresAt: Date }> {
  await lockOrganization(tx, call, 'members.resetPassword')
  const { organizationId, admitted } = call
  const personId = toPersonId(id)
  const { person } = await getMember(tx, organizationId, personId)
  if (personId === admitted.person.id) {
    throw new Fault('conflict', 'This is your own account: change your password there')
  }
  // Holds up whoever makes them a member elsewhere meanwhile.
  await tx`select from people where id = ${personId} for update`
  const [others] = await tx<[{ any: boolean }]>`
    select exists (
      select
      from memberships theirs
        join organizations o on o.id = theirs.organization_id and o.deleted_at is null
        left join memberships own
          on own.organization_id = theirs.organization_id and own.person_id = ${admitted.person.id}
      where theirs.person_id = ${personId} and own.role is distinct from 'owner'
    ) as any
  `
  if (others.any || (person.isOperator && !admitted.person.isOperator)) {
    throw new Fault(
      'forbidden',
      'This account opens more than you own: ask the operator of the server, who runs `tidings owner reset`',
    )
  }
  const link = await createResetLink(tx, call.actor, personId)
  await writeAudit(tx, call.actor, {
    action: 'member.resetLinkCreated',
    organizationId,
    target: id,
  })
  return link
}

async function endMembership(
  tx: Tx,
  { organizationId }: OrganizationCall,
  personId: string,
): Promise<void> {
  await tx`
    delete from memberships where organization_id = ${organizationId} and person_id = ${personId}
  `
  await withdrawInvitesOf(tx, organizationId, personId)
}

async function getMember(tx: Tx, organizationId: string, personId: string): Promise<Member> {
  const [row] = await tx<Row[]>`
    select
      p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
      (select max(s.last_seen_at) from sessions s where s.person_id = p.id) as last_seen_at
    from memberships m
      join people p on p.id = m.person_id
    where m.organization_id = ${organizationId} and m.person_id = ${personId}
  `
  if (!row) throw notFound()
  return toMember(row)
}

async function checkOwnerStays(tx: Tx, organizationId: string, personId: string): Promise<void> {
  const [others] = await tx<[{ any: boolean }]>`
    select exists (
      select
      from memberships
      where organization_id = ${organizationId} and role = 'owner' and person_id <> ${personId}
    ) as any
  `
  if (others.any) return
  throw new Fault(
    'conflict',
    'An organization keeps at least one owner: make another member an owner first',
  )
}

function toMember(row: Row): Member {
  const { id, name, email, is_operator: isOperator } = row
  return {
    person: toPerson({ id, name, email, isOperator }),
    role: row.role,
    joinedAt: row.joined_at.toISOString(),
    lastSeenAt: row.last_seen_at?.toISOString() ?? null,
  }
}

function toPersonId(id: string): string {
  const uuid = parseId('per', id)
  if (uuid === undefined) throw notFound()
  return uuid
}

function notFound(): Fault {
  return new Fault('not_found', 'No member of the organization has this id')
}

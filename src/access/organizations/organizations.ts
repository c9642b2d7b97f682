import { Fault } from '../../base/errors.ts'
import { newId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { authorize, requireVerified } from '../guard/authorize.ts'
import { toEffectiveRole } from '../guard/caller.ts'
import { ACTIONS, type Action, type Role, type Rule } from '../guard/permissions.ts'
import { toName } from '../guard/schema.ts'
import type { Organization, OrganizationChange } from './schema.ts'
import type { AdmittedCaller } from '../guard/sessions.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { withdrawInvites } from '../sign-in/ways-in.ts'
import { withdrawLinksOfMember } from '../sign-in/reset-links.ts'

const MAX_ORGANIZATIONS = 1_000

/**
 * The account that acts, and the organization on which it acts. A `SessionCall` has these fields.
 */
export interface OrganizationCall {
  admitted: AdmittedCaller
  actor: Actor
  organizationId: string
}

/**
 * Locks an organization until the transaction ends. Authorizes `action` again, because the role may
 * have changed since admission, and a token may have ended. Returns the caller's role. Every change
 * of an organization's members, roles or projects takes this lock first. Then it locks the account
 * of the session, like `lockOwnAccount`, if the action requires a proof.
 */
export async function lockOrganization(
  tx: Tx,
  call: Omit<OrganizationCall, 'actor'>,
  action: Action,
): Promise<Role> {
  const role = await lockRole(tx, call, action)
  const { proof }: Rule = ACTIONS[action]
  if (call.admitted.session && proof) await lockOwnAccount(tx, call.admitted)
  return role
}

/** Locks an organization like `lockOrganization`, without the account. */
export async function lockRole(
  tx: Tx,
  { admitted, organizationId }: Omit<OrganizationCall, 'actor'>,
  action: Action,
): Promise<Role> {
  await tx`select from organizations where id = ${organizationId} for no key update`
  if (admitted.token) await lockToken(tx, admitted.token.id)
  const [found] = await tx<{ role: Role }[]>`
    select m.role
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.organization_id = ${organizationId} and m.account_id = ${admitted.account.id}
  `
  const kind = ACTIONS[action].on === 'project' ? 'project' : 'organization'
  const role = found && toEffectiveRole(found.role, admitted.token)
  authorize(admitted, action, { kind, role })
  if (!role) throw organizationNotFound()
  return role
}

/** Keeps a management token until the transaction ends. Throws `signed_out` if it has ended. */
async function lockToken(tx: Tx, id: string): Promise<void> {
  // The transaction may have waited, so its start is not the present time.
  const locked = await tx`
    select from management_tokens where id = ${id} and expires_at > clock_timestamp() for key share
  `
  if (locked.count === 0) throw new Fault('signed_out', 'The management token has ended')
}

/** Creates an organization without members. Returns its uuid. */
export async function createOrganization(tx: Tx, name: string): Promise<string> {
  const { uuid } = newId('org')
  await tx`insert into organizations (id, name) values (${uuid}, ${name})`
  return uuid
}

/** Creates an organization that the caller owns. Returns its uuid. */
export async function createOwnOrganization(
  tx: Tx,
  { admitted, actor }: Omit<OrganizationCall, 'organizationId'>,
  name: string,
): Promise<string> {
  const [count] = await tx<[{ n: number }]>`
    select count(*)::int as n from organizations where deleted_at is null
  `
  if (count.n >= MAX_ORGANIZATIONS) {
    throw new Fault('conflict', `A server can have at most ${MAX_ORGANIZATIONS} organizations`)
  }
  const organizationId = await createOrganization(tx, name)
  await tx`
    insert into memberships (organization_id, account_id, role)
    values (${organizationId}, ${admitted.account.id}, 'owner')
  `
  await withdrawLinksOfMember(tx, actor, admitted.account.id)
  const target = toId('org', organizationId)
  const action = 'organization.created'
  await writeAudit(tx, actor, { action, organizationId, target, details: { name } })
  return organizationId
}

/** Returns an organization as a member with `role` sees it. Throws `not_found`. */
export async function getOrganization(
  sql: Queryable,
  organizationId: string,
  role: Role,
): Promise<Organization> {
  const [row] = await sql<
    {
      name: string
      created_at: Date
      requires_second_factor: boolean
      members: number
      members_without: number
    }[]
  >`
    select
      o.name, o.created_at, o.requires_second_factor,
      (select count(*)::int from memberships m where m.organization_id = o.id) as members,
      (
        select count(*)::int
        from memberships m
        where m.organization_id = o.id and not has_factor(m.account_id)
      ) as members_without
    from organizations o
    where o.id = ${organizationId} and o.deleted_at is null
  `
  if (!row) throw organizationNotFound()
  const projects = await sql<{ id: string; name: string }[]>`
    select id, name
    from projects
    where organization_id = ${organizationId} and deleted_at is null
    order by id
  `
  return {
    id: toId('org', organizationId),
    name: row.name,
    role,
    createdAt: row.created_at.toISOString(),
    members: row.members,
    requiresSecondFactor: row.requires_second_factor,
    membersWithoutSecondFactor: row.members_without,
    projects: projects.map(({ id, name }) => ({ id: toId('prj', id), name })),
  }
}

/**
 * Renames an organization, or changes whether it requires a second factor. Returns the caller's
 * role. The latter throws `verification_needed`, and `conflict` if it would lock the caller out.
 */
export async function editOrganization(
  tx: Tx,
  call: OrganizationCall,
  { name, requiresSecondFactor }: OrganizationChange,
): Promise<Role> {
  const { organizationId, actor } = call
  const role = await lockOrganization(tx, call, 'organization.edit')
  const target = toId('org', organizationId)
  if (name !== undefined) {
    await tx`update organizations set name = ${toName(name)} where id = ${organizationId}`
    const action = 'organization.renamed'
    await writeAudit(tx, actor, { action, organizationId, target, details: { name: toName(name) } })
  }
  if (requiresSecondFactor === undefined) return role
  if (call.admitted.token) {
    throw new Fault('forbidden', 'Tokens cannot change this. Sign in to the dashboard.')
  }
  const changed = await tx`
    update organizations set requires_second_factor = ${requiresSecondFactor}
    where id = ${organizationId} and requires_second_factor <> ${requiresSecondFactor}
  `
  if (changed.count === 0) return role
  requireVerified(call.admitted)
  if (requiresSecondFactor && !call.admitted.session.isMultiFactor) throw wouldLockOut()
  const action = 'organization.secondFactorChanged'
  // A session without a factor may have made them.
  const invites = requiresSecondFactor
    ? await withdrawInvites(tx, actor, tx`i.organization_id = ${organizationId}`)
    : 0
  const details = { isRequired: requiresSecondFactor, ...(invites > 0 && { withdrawn: invites }) }
  await writeAudit(tx, actor, { action, organizationId, target, details })
  return role
}

function wouldLockOut(): Fault {
  return new Fault(
    'conflict',
    'You would lose access yourself. Sign in with a passkey or a code first.',
  )
}

function organizationNotFound(): Fault {
  return new Fault('not_found', 'No organization has this id')
}

import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toId } from '../ids.ts'
import type { Organization } from './organization-schema.ts'
import { ACTIONS, authorize, type Action, type Role } from './permissions.ts'
import { createOrganization, createProject } from './projects.ts'
import type { Admitted } from './sessions.ts'

const MAX_ORGANIZATIONS = 1_000
const MAX_PROJECTS = 100

/** Who does something, and to which organization: a call of /api is one. */
export interface OrganizationCall {
  admitted: Admitted
  actor: Actor
  organizationId: string
}

/**
 * Locks an organization until the transaction ends, and asks again whether the person may do `action`: between their
 * admission and this lock somebody else may have taken their role, or deleted it all. Returns their role.
 * Whatever changes who is a member of it, in which role, or which projects it has, holds this lock.
 */
export async function lockOrganization(
  tx: Tx,
  { admitted, organizationId }: Omit<OrganizationCall, 'actor'>,
  action: Action,
): Promise<Role> {
  await tx`select from organizations where id = ${organizationId} for no key update`
  const [found] = await tx<{ role: Role }[]>`
    select m.role
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.organization_id = ${organizationId} and m.person_id = ${admitted.person.id}
  `
  const { on } = ACTIONS[action]
  const kind = on === 'project' ? on : 'organization'
  authorize({ isOperator: admitted.person.isOperator, isVerified: admitted.isVerified }, action, {
    kind,
    role: found?.role,
  })
  if (!found) throw new Fault('not_found', 'No organization has this id')
  return found.role
}

/** Makes an organization, whose owner is the person that makes it. Returns its uuid. */
export async function createOwnOrganization(
  tx: Tx,
  { admitted, actor }: Omit<OrganizationCall, 'organizationId'>,
  name: string,
): Promise<string> {
  const [count] = await tx<[{ n: number }]>`
    select count(*)::int as n from organizations where deleted_at is null
  `
  if (count.n >= MAX_ORGANIZATIONS) {
    throw new Fault('conflict', `A server has at most ${MAX_ORGANIZATIONS} organizations`)
  }
  const organizationId = await createOrganization(tx, name)
  await tx`
    insert into memberships (organization_id, person_id, role)
    values (${organizationId}, ${admitted.person.id}, 'owner')
  `
  await writeAudit(tx, actor, {
    action: 'organization.created',
    organizationId,
    target: toId('org', organizationId),
    details: { name },
  })
  return organizationId
}

/** An organization as a person with `role` in it sees it. Throws `not_found`. */
export async function getOrganization(
  sql: Queryable,
  organizationId: string,
  role: Role,
): Promise<Organization> {
  const [row] = await sql<{ name: string; created_at: Date; members: number }[]>`
    select o.name, o.created_at, (
        select count(*)::int from memberships m where m.organization_id = o.id
      ) as members
    from organizations o
    where o.id = ${organizationId} and o.deleted_at is null
  `
  if (!row) throw new Fault('not_found', 'No organization has this id')
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
    projects: projects.map(({ id, name }) => ({ id: toId('prj', id), name })),
  }
}

export async function renameOrganization(
  tx: Tx,
  call: OrganizationCall,
  name: string,
): Promise<Role> {
  const role = await lockOrganization(tx, call, 'organization.edit')
  await tx`update organizations set name = ${name} where id = ${call.organizationId}`
  await writeAudit(tx, call.actor, {
    action: 'organization.renamed',
    organizationId: call.organizationId,
    target: toId('org', call.organizationId),
    details: { name },
  })
  return role
}

/** Makes a project of the organization, with an empty log; returns its uuid. */
export async function addProject(tx: Tx, call: OrganizationCall, name: string): Promise<string> {
  const { organizationId, actor } = call
  await lockOrganization(tx, call, 'projects.create')
  const [count] = await tx<[{ n: number }]>`
    select count(*)::int as n
    from projects
    where organization_id = ${organizationId} and deleted_at is null
  `
  if (count.n >= MAX_PROJECTS) {
    throw new Fault(
      'conflict',
      `An organization has at most ${MAX_PROJECTS} projects: delete one first`,
    )
  }
  const projectId = await createProject(tx, { organizationId, name })
  await writeAudit(tx, actor, {
    action: 'project.created',
    organizationId,
    projectId,
    target: toId('prj', projectId),
    details: { name },
  })
  return projectId
}

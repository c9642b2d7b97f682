import { Fault } from '../../base/errors.ts'
import { newId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { requireVerified, type Verifiable } from '../guard/authorize.ts'
import type { Role } from '../guard/permissions.ts'
import type { Project, ProjectChange } from './schema.ts'
import { lockOrganization, type OrganizationCall } from './organizations.ts'

const MAX_PROJECTS = 100

export interface ProjectInfo {
  /** For SQL. */
  uuid: string
  id: string
  name: string
  organization: string
}

/** Returns all projects of the installation, oldest first. */
export async function listProjects(sql: Queryable): Promise<ProjectInfo[]> {
  const rows = await sql<Omit<ProjectInfo, 'id'>[]>`
    select p.id as uuid, p.name, o.name as organization
    from projects p
      join organizations o on o.id = p.organization_id
    where p.deleted_at is null
    order by p.id
  `
  return rows.map(row => ({ ...row, id: toId('prj', row.uuid) }))
}

/** Creates a project and its empty log. Returns its uuid. */
export async function createProject(
  tx: Tx,
  { organizationId, name }: { organizationId: string; name: string },
): Promise<string> {
  const { uuid } = newId('prj')
  await tx`
    insert into projects (id, organization_id, name) values (${uuid}, ${organizationId}, ${name})
  `
  await tx`insert into event_logs (project_id) values (${uuid})`
  return uuid
}

/** Creates a project for a member. Returns its uuid. */
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
      `An organization can have at most ${MAX_PROJECTS} projects. Delete one first.`,
    )
  }
  const projectId = await createProject(tx, { organizationId, name })
  const target = toId('prj', projectId)
  const action = 'project.created'
  await writeAudit(tx, actor, { action, organizationId, projectId, target, details: { name } })
  return projectId
}

/**
 * Locks a project until the transaction ends. Changes of its keys and its deletion wait for the
 * lock; new events do not. Returns the uuid of its organization. Throws `not_found` for a deleted
 * project.
 */
export async function lockProject(tx: Tx, projectId: string): Promise<string> {
  const [found] = await tx<{ organization_id: string }[]>`
    select organization_id
    from projects
    where id = ${projectId} and deleted_at is null
    for no key update
  `
  if (!found) throw projectNotFound()
  return found.organization_id
}

/** Returns a project as a member with `role` sees it. Throws `not_found`. */
export async function getProject(sql: Queryable, projectId: string, role: Role): Promise<Project> {
  const [row] = await sql<
    {
      name: string
      keep_days: number | null
      created_at: Date
      organization_id: string
      organization: string
      head: string
    }[]
  >`
    select
      p.name, p.keep_days, p.created_at, o.id as organization_id, o.name as organization,
      l.last_seq as head
    from projects p
      join organizations o on o.id = p.organization_id
      cross join lateral log_of(p.id) l
    where p.id = ${projectId} and p.deleted_at is null
  `
  if (!row) throw projectNotFound()
  return {
    id: toId('prj', projectId),
    name: row.name,
    organization: { id: toId('org', row.organization_id), name: row.organization },
    role,
    keepDays: row.keep_days,
    createdAt: row.created_at.toISOString(),
    head: Number(row.head),
  }
}

interface ProjectCall {
  actor: Actor
  projectId: string
  admitted: Verifiable
}

/**
 * Changes the given fields. A shorter retention deletes events, so it requires a verification.
 */
export async function editProject(
  tx: Tx,
  { actor, projectId, admitted }: ProjectCall,
  { name, keepDays }: ProjectChange,
): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const [before] = await tx<{ keep_days: number | null }[]>`
    select keep_days from projects where id = ${projectId}
  `
  const isShorter = typeof keepDays === 'number' && keepDays < (before?.keep_days ?? Infinity)
  if (isShorter) requireVerified(admitted)
  if (name === undefined && keepDays === undefined) return
  await tx`
    update projects set
      name = coalesce(${name ?? null}, name),
      keep_days = case when ${keepDays === undefined} then keep_days else ${keepDays ?? null}::int end
    where id = ${projectId}
  `
  await writeAudit(tx, actor, {
    action: 'project.edited',
    organizationId,
    projectId,
    target: toId('prj', projectId),
    details: { ...(name !== undefined && { name }), ...(keepDays !== undefined && { keepDays }) },
  })
}

export function projectNotFound(): Fault {
  return new Fault('not_found', 'No project has this id')
}

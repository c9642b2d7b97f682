import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { newId, toId } from '../ids.ts'
import type { Project, ProjectChange } from './organization-schema.ts'
import type { Role } from './permissions.ts'

export interface ProjectInfo {
  /** The uuid, for statements. */
  uuid: string
  id: string
  name: string
  organization: string
}

/** Every project of the installation, oldest first. */
export async function listProjects(sql: Queryable): Promise<ProjectInfo[]> {
  const rows = await sql<{ id: string; name: string; organization: string }[]>`
    select p.id, p.name, o.name as organization
    from projects p
      join organizations o on o.id = p.organization_id
    where p.deleted_at is null
    order by p.id
  `
  return rows.map(({ id, name, organization }) => ({
    uuid: id,
    id: toId('prj', id),
    name,
    organization,
  }))
}

/** Creates an organization; returns its uuid. */
export async function createOrganization(tx: Tx, name: string): Promise<string> {
  const { uuid } = newId('org')
  await tx`insert into organizations (id, name) values (${uuid}, ${name})`
  return uuid
}

/** Creates a project and its empty log; returns its uuid. */
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

/**
 * Locks a project until the transaction ends, and returns the uuid of its organization; throws `not_found` where it is
 * deleted. Appending to its log goes on meanwhile; making keys and deleting it do not.
 */
export async function lockProject(tx: Tx, projectId: string): Promise<string> {
  const [found] = await tx<{ organization_id: string }[]>`
    select organization_id
    from projects
    where id = ${projectId} and deleted_at is null
    for no key update
  `
  if (!found) throw notFound()
  return found.organization_id
}

interface Row {
  name: string
  keep_days: number | null
  created_at: Date
  organization_id: string
  organization: string
  head: string
}

/** A project as a person with `role` in its organization sees it. Throws `not_found`. */
export async function getProject(sql: Queryable, projectId: string, role: Role): Promise<Project> {
  const [row] = await sql<Row[]>`
    select
      p.name, p.keep_days, p.created_at, o.id as organization_id, o.name as organization,
      l.last_seq as head
    from projects p
      join organizations o on o.id = p.organization_id
      join event_logs l on l.project_id = p.id
    where p.id = ${projectId} and p.deleted_at is null
  `
  if (!row) throw notFound()
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

export interface ProjectCall {
  actor: Actor
  projectId: string
  /** Whether the password was typed within the last 10 minutes. */
  isVerified: boolean
}

/** Changes what is given. To keep events for a shorter time deletes some, which takes the password. */
export async function editProject(
  tx: Tx,
  { actor, projectId, isVerified }: ProjectCall,
  { name, keepDays }: ProjectChange,
): Promise<void> {
  const organizationId = await lockProject(tx, projectId)
  const [before] = await tx<{ keep_days: number | null }[]>`
    select keep_days from projects where id = ${projectId}
  `
  const isShorter = typeof keepDays === 'number' && keepDays < (before?.keep_days ?? Infinity)
  if (isShorter && !isVerified) {
    throw new Fault(
      'verification_needed',
      'Type your password again: to keep events for a shorter time deletes those that are older',
    )
  }
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

function notFound(): Fault {
  return new Fault('not_found', 'No project has this id')
}

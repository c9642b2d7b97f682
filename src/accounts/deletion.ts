import { writeAudit } from '../audit/audit.ts'
import { toArray } from '../db/arrays.ts'
import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toId } from '../ids.ts'
import { lockOrganization, type OrganizationCall } from './organizations.ts'

/**
 * Deletes a project: from the commit on nobody finds it, its keys are refused, and whatever is being appended to its log
 * meanwhile is refused, too. The reaper clears its rows away.
 */
export async function deleteProject(
  tx: Tx,
  call: OrganizationCall & { projectId: string },
): Promise<void> {
  const { organizationId, projectId, actor } = call
  await lockOrganization(tx, call, 'project.delete')
  const [found] = await lockProjects(tx, organizationId, projectId)
  if (!found) throw new Fault('not_found', 'No project has this id')
  await endProjects(tx, [projectId])
  await writeAudit(tx, actor, {
    action: 'project.deleted',
    organizationId,
    projectId,
    target: toId('prj', projectId),
    details: { name: found.name },
  })
}

/** Deletes an organization with all that it has. */
export async function deleteOrganization(tx: Tx, call: OrganizationCall): Promise<void> {
  const { organizationId, actor } = call
  await lockOrganization(tx, call, 'organization.delete')
  const projects = await lockProjects(tx, organizationId)
  await endProjects(
    tx,
    projects.map(({ id }) => id),
  )
  await tx`delete from invites where organization_id = ${organizationId}`
  await tx`delete from memberships where organization_id = ${organizationId}`
  const [ended] = await tx<{ name: string }[]>`
    update organizations set deleted_at = now() where id = ${organizationId} returning name
  `
  const deed = {
    action: 'organization.deleted',
    target: toId('org', organizationId),
    details: { name: ended?.name ?? '', projects: projects.length },
  } as const
  await writeAudit(tx, actor, { ...deed, organizationId })
  // Once more for the operator: nobody is left who could read the organization's own log.
  await writeAudit(tx, actor, deed)
}

/** Locks the living projects of an organization, or one of them, in the order of their ids. */
async function lockProjects(
  tx: Tx,
  organizationId: string,
  projectId?: string,
): Promise<{ id: string; name: string }[]> {
  return await tx<{ id: string; name: string }[]>`
    select id, name
    from projects
    where organization_id = ${organizationId} and deleted_at is null
      ${projectId === undefined ? tx`` : tx`and id = ${projectId}`}
    order by id
    for no key update
  `
}

/** Ends projects that the transaction has locked. */
async function endProjects(tx: Tx, projectIds: readonly string[]): Promise<void> {
  const ids = toArray(projectIds)
  // In the order in which every writer takes logs. An append that waits here finds no log, and answers 401.
  await tx`
    select from event_logs
    where project_id = any(${ids}::uuid[])
    order by project_id
    for update
  `
  await tx`delete from event_logs where project_id = any(${ids}::uuid[])`
  await tx`
    update api_keys set revoked_at = now()
    where id in (
      select id
      from api_keys
      where project_id = any(${ids}::uuid[]) and revoked_at is null
      order by id
      for no key update
    )
  `
  await tx`update projects set deleted_at = now() where id = any(${ids}::uuid[])`
}

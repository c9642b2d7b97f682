import type { Queryable, Tx } from '../db/sql.ts'
import { newId, toId } from '../ids.ts'

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

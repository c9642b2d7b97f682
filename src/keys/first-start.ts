import { createOrganization, createProject } from '../accounts/projects.ts'
import { SERVER } from '../audit/audit.ts'
import type { Sql, Tx } from '../db/sql.ts'
import { createKey } from './keys.ts'

/**
 * Gives an empty installation its first key, once, however many servers start. Returns the token to
 * whoever did it, and undefined to all others.
 */
export async function ensureFirstKey(sql: Sql): Promise<string | undefined> {
  return sql.begin(async tx => {
    const projectId = await ensureFirstProject(tx)
    if (projectId === undefined) return undefined
    return (await createKey(tx, SERVER, { projectId, name: 'First key' })).token
  })
}

/**
 * Gives an empty installation an organization and a project; returns its uuid if it was made now. Where everything was
 * deleted it is made anew, and the operators own it: it would be nobody's else.
 */
export async function ensureFirstProject(tx: Tx): Promise<string | undefined> {
  if (await hasOrganization(tx)) return undefined
  // Of several first starts one goes on.
  await tx`lock table organizations in share row exclusive mode`
  if (await hasOrganization(tx)) return undefined
  const organizationId = await createOrganization(tx, 'My organization')
  await tx`
    insert into memberships (organization_id, person_id, role)
    select ${organizationId}, id, 'owner'
    from people
    where is_operator
  `
  return createProject(tx, { organizationId, name: 'My project' })
}

async function hasOrganization(tx: Tx): Promise<boolean> {
  const [found] = await tx<[{ any: boolean }]>`
    select exists (select from organizations where deleted_at is null) as any
  `
  return found.any
}

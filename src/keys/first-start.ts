import { createOrganization, createProject } from '../accounts/projects.ts'
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
    return (await createKey(tx, { projectId, name: 'First key' })).token
  })
}

/** Gives an empty installation an organization and a project; returns its uuid if it was made now. */
export async function ensureFirstProject(tx: Tx): Promise<string | undefined> {
  if (await hasOrganization(tx)) return undefined
  // Of several first starts one goes on.
  await tx`lock table organizations in share row exclusive mode`
  if (await hasOrganization(tx)) return undefined
  const organizationId = await createOrganization(tx, 'My organization')
  return createProject(tx, { organizationId, name: 'My project' })
}

async function hasOrganization(tx: Tx): Promise<boolean> {
  const [found] = await tx<[{ any: boolean }]>`
    select exists (select from organizations) as any
  `
  return found.any
}

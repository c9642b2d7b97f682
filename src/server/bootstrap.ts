import { ensureSetup, hasOwner } from '../accounts/owners.ts'
import { createOrganization } from '../accounts/organizations.ts'
import { createProject } from '../accounts/projects.ts'
import { SERVER } from '../audit/audit.ts'
import type { Config } from '../config.ts'
import type { Queryable, Sql, Tx } from '../db/sql.ts'
import { createKey } from '../keys/keys.ts'

/** Secrets that a start prints once on its terminal. */
export interface BootstrapSecrets {
  /** The token of the first key, when this start made it. */
  firstKey: string | undefined
  /** The token of a fresh setup link, while the installation has no owner. */
  setupToken: string | undefined
}

export const NO_BOOTSTRAP_SECRETS: BootstrapSecrets = { firstKey: undefined, setupToken: undefined }

/** Creates the first key, and the first owner or the setup link for one. */
export async function bootstrap(
  sql: Sql,
  { owner }: Pick<Config, 'owner'>,
): Promise<BootstrapSecrets> {
  return { firstKey: await ensureFirstKey(sql), setupToken: await ensureSetup(sql, owner) }
}

/** Whether the first key exists, and the owner where the configuration names one. */
export async function isBootstrapped(
  sql: Queryable,
  { owner }: Pick<Config, 'owner'>,
): Promise<boolean> {
  // The first key is made together with the first organization.
  return (await hasOrganization(sql)) && (owner === undefined || (await hasOwner(sql)))
}

/** Creates the first key of an empty installation. Of concurrent calls one returns its token, the others undefined. */
export async function ensureFirstKey(sql: Sql): Promise<string | undefined> {
  return sql.begin(async tx => {
    const projectId = await ensureFirstProject(tx)
    if (projectId === undefined) return undefined
    return (await createKey(tx, SERVER, { projectId, name: 'First key' })).token
  })
}

/**
 * Creates the first organization and project. Returns the project's uuid, or undefined when an organization exists.
 * After everything was deleted, the operators own the new organization.
 */
export async function ensureFirstProject(tx: Tx): Promise<string | undefined> {
  if (await hasOrganization(tx)) return undefined
  // Of concurrent first starts one continues.
  await tx`lock table organizations in share row exclusive mode`
  if (await hasOrganization(tx)) return undefined
  const organizationId = await createOrganization(tx, 'My organization')
  await tx`
    insert into memberships (organization_id, account_id, role)
    select ${organizationId}, id, 'owner'
    from accounts
    where is_operator
  `
  return createProject(tx, { organizationId, name: 'My project' })
}

/** Whether the installation has an organization that is not deleted. */
async function hasOrganization(sql: Queryable): Promise<boolean> {
  const [found] = await sql<[{ any: boolean }]>`
    select exists (select from organizations where deleted_at is null) as any
  `
  return found.any
}

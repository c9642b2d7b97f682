import { ensureSetup, hasOwner } from '../access/sign-in/owners.ts'
import { createOrganization } from '../access/organizations/organizations.ts'
import { createProject } from '../access/organizations/projects.ts'
import { SERVER } from '../access/audit/audit.ts'
import type { Config } from '../base/config.ts'
import type { Queryable, Sql, Tx } from '../database/sql.ts'
import { createKey } from '../access/keys/keys.ts'

/** Secrets that a start prints at the terminal, once. */
export interface BootstrapSecrets {
  /** The first API key, when this start created it. */
  firstKey: string | undefined
  /** The token of a new setup link, while the installation has no owner. */
  setupToken: string | undefined
}

export const NO_BOOTSTRAP_SECRETS: BootstrapSecrets = { firstKey: undefined, setupToken: undefined }

/** How a start prints its secrets. */
export interface BootstrapOptions {
  /** True at a terminal. The page behind the setup link then gives the first API key. */
  isTerminal?: boolean | undefined
}

/** Creates the first project with an API key, and the configured owner or a setup link. */
export async function bootstrap(
  sql: Sql,
  { owner }: Pick<Config, 'owner'>,
  { isTerminal = false }: BootstrapOptions,
): Promise<BootstrapSecrets> {
  const hasPage = isTerminal && owner === undefined && !(await hasOwner(sql))
  const setupToken = await ensureSetup(sql, owner)
  // The key is shown only once. After it, nothing of the start can fail.
  const firstKey = hasPage
    ? await sql.begin(async tx => void (await ensureFirstProject(tx)))
    : await ensureFirstKey(sql)
  return { firstKey, setupToken }
}

/** Returns true when the first key exists, and the owner if one is configured. */
export async function isBootstrapped(
  sql: Queryable,
  { owner }: Pick<Config, 'owner'>,
): Promise<boolean> {
  // The first project and its key are created together with the first organization.
  return (await hasOrganization(sql)) && (owner === undefined || (await hasOwner(sql)))
}

/**
 * Creates the first key of an empty installation. Only one of concurrent calls returns its token.
 */
export async function ensureFirstKey(sql: Sql): Promise<string | undefined> {
  return sql.begin(async tx => {
    const projectId = await ensureFirstProject(tx)
    if (projectId === undefined) return undefined
    return (await createKey(tx, SERVER, { projectId, name: 'First key', isPrinted: true })).token
  })
}

/**
 * Creates the first organization and project. Returns the project's uuid, or undefined when an
 * organization exists. Operators become its owners, in case every organization was deleted.
 */
export async function ensureFirstProject(tx: Tx): Promise<string | undefined> {
  if (await hasOrganization(tx)) return undefined
  // Only one of concurrent first starts continues.
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

/** Returns true when the installation has an organization that is not deleted. */
async function hasOrganization(sql: Queryable): Promise<boolean> {
  const [found] = await sql<[{ any: boolean }]>`
    select exists (select from organizations where deleted_at is null) as any
  `
  return found.any
}

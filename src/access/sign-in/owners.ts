import { newId, toId } from '../../base/ids.ts'
import type { Queryable, Sql, Tx } from '../../database/sql.ts'
import { SERVER, writeAudit, type Actor } from '../audit/audit.ts'
import { hashSecret, newSecret } from '../guard/secret.ts'
import { hashPassword } from './credentials.ts'

export interface NewOwner {
  name: string
  /** As normalized by `parseEmail`. */
  email: string
  /** Null if a reset link will set the password. */
  passwordHash: string | null
}

/** Returns whether the installation has any account. */
export async function hasOwner(sql: Queryable): Promise<boolean> {
  const [found] = await sql<[{ any: boolean }]>`select exists (select from accounts) as any`
  return found.any
}

/**
 * Prepares the first sign-in on an installation without accounts. Creates the configured owner, if
 * there is one. Otherwise replaces all setup links with a new one, and returns its token.
 */
export async function ensureSetup(
  sql: Sql,
  owner: { email: string; password: string } | undefined,
): Promise<string | undefined> {
  if (await hasOwner(sql)) return undefined
  if (!owner) return sql.begin(createSetupLink)
  const { email, password } = owner
  const passwordHash = await hashPassword(password, email)
  const name = email.split('@')[0] ?? email
  await sql.begin(tx => createFirstOwner(tx, SERVER, { name, email, passwordHash }))
  return undefined
}

/**
 * Creates a setup link that is valid for 30 minutes. Returns its token, or undefined if an account
 * exists.
 */
async function createSetupLink(tx: Tx): Promise<string | undefined> {
  await lockAccounts(tx)
  if (await hasOwner(tx)) return undefined
  const token = newSecret(128)
  await tx`delete from setup_links`
  await tx`
    insert into setup_links (hash, expires_at)
    values (decode(${hashSecret(token)}, 'hex'), now() + interval '30 minutes')
  `
  return token
}

/** Returns whether a token is that of a valid setup link. */
export async function isSetupLink(sql: Queryable, token: string): Promise<boolean> {
  const [row] = await sql<[{ live: boolean }]>`
    select exists (
      select from setup_links
      where hash = decode(${hashSecret(token)}, 'hex') and is_unexpired(expires_at, '30 minutes')
    ) as live
  `
  return row.live
}

/**
 * Creates the first account. It is the operator of the installation, and an owner of every
 * organization that has no owner. Deletes the setup links. Returns the account's uuid, or undefined
 * if an account exists. Only one of several concurrent calls succeeds.
 */
export async function createFirstOwner(
  tx: Tx,
  actor: Actor,
  owner: NewOwner,
): Promise<string | undefined> {
  await lockAccounts(tx)
  if (await hasOwner(tx)) return undefined
  const accountId = await insertOwner(tx, actor, owner)
  await tx`
    insert into memberships (organization_id, account_id, role)
    select o.id, ${accountId}, 'owner'
    from organizations o
    where o.deleted_at is null
      and not exists (
        select from memberships m where m.organization_id = o.id and m.role = 'owner'
      )
  `
  await tx`delete from setup_links`
  return accountId
}

/** Names the organization and the project that the first start has created. */
export async function nameFirstProject(
  tx: Tx,
  { organization, project }: { organization?: string; project?: string },
): Promise<void> {
  const [first] = await tx<{ id: string }[]>`
    update organizations set name = coalesce(${organization?.trim() ?? null}, name)
    where id = (select id from organizations where deleted_at is null order by id limit 1)
    returning id
  `
  await tx`
    update projects set name = coalesce(${project?.trim() ?? null}, name)
    where id = (
      select id
      from projects
      where organization_id = ${first?.id ?? null} and deleted_at is null
      order by id
      limit 1
    )
  `
}

/**
 * Creates another operator, who owns every organization. `tidings owner create` restores access
 * with it.
 */
export async function createOwner(tx: Tx, actor: Actor, owner: NewOwner): Promise<string> {
  const accountId = await insertOwner(tx, actor, owner)
  await tx`
    insert into memberships (organization_id, account_id, role)
    select id, ${accountId}, 'owner'
    from organizations
    where deleted_at is null
  `
  await tx`delete from setup_links`
  return accountId
}

async function insertOwner(
  tx: Tx,
  actor: Actor,
  { name, email, passwordHash }: NewOwner,
): Promise<string> {
  const { uuid } = newId('per')
  await tx`
    insert into accounts (
      id, name, email, password_hash, is_password_from_machine, is_email_proven, is_operator
    )
    values (${uuid}, ${name}, ${email}, ${passwordHash}, ${passwordHash !== null}, true, true)
  `
  await writeAudit(tx, actor, { action: 'owner.created', target: toId('per', uuid) })
  return uuid
}

/** Blocks the creation of accounts until the transaction ends. Sign-ins are not blocked. */
async function lockAccounts(tx: Tx): Promise<void> {
  await tx`lock table accounts in share row exclusive mode`
}

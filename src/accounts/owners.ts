import { SERVER, writeAudit, type Actor } from '../audit/audit.ts'
import type { Queryable, Sql, Tx } from '../db/sql.ts'
import { newId, toId } from '../ids.ts'
import { hashPassword } from './passwords.ts'
import { hashSecret, newSecret } from './secret.ts'

export interface NewOwner {
  name: string
  /** As `parseEmail` spells it. */
  email: string
  /** Null for somebody who is to choose a password by a reset link. */
  passwordHash: string | null
}

/** Whether anybody can sign in to this installation: until then, it waits for its owner. */
export async function hasOwner(sql: Queryable): Promise<boolean> {
  const [found] = await sql<[{ any: boolean }]>`select exists (select from people) as any`
  return found.any
}

/**
 * At the start of a server: makes the owner of the configuration while there is nobody, or else a setup link, which
 * ends those before. Returns the link's token.
 */
export async function ensureSetup(
  sql: Sql,
  owner: { email: string; password: string } | undefined,
): Promise<string | undefined> {
  if (await hasOwner(sql)) return undefined
  if (!owner) return sql.begin(createSetupLink)
  const { email, password } = owner
  const passwordHash = await hashPassword(password)
  const name = email.split('@')[0] ?? email
  await sql.begin(tx => createFirstOwner(tx, SERVER, { name, email, passwordHash }))
  return undefined
}

/** A link with which the first owner claims the installation within 30 minutes; undefined when there is somebody. */
async function createSetupLink(tx: Tx): Promise<string | undefined> {
  await lockPeople(tx)
  if (await hasOwner(tx)) return undefined
  const token = newSecret(128)
  await tx`delete from setup_links`
  await tx`
    insert into setup_links (hash, expires_at)
    values (decode(${hashSecret(token)}, 'hex'), now() + interval '30 minutes')
  `
  return token
}

/** Whether a setup link is live. */
export async function isSetupLink(sql: Queryable, token: string): Promise<boolean> {
  const [row] = await sql<[{ live: boolean }]>`
    select exists (
      select from setup_links where hash = decode(${hashSecret(token)}, 'hex') and expires_at > now()
    ) as live
  `
  return row.live
}

/**
 * Makes the first person, operator of the installation and owner of every organization that has none, and ends the
 * setup links. Returns the uuid; undefined when there is somebody already. Of many who try at once one succeeds.
 */
export async function createFirstOwner(
  tx: Tx,
  actor: Actor,
  owner: NewOwner,
): Promise<string | undefined> {
  await lockPeople(tx)
  if (await hasOwner(tx)) return undefined
  const personId = await insertOwner(tx, actor, owner)
  await tx`
    insert into memberships (organization_id, person_id, role)
    select o.id, ${personId}, 'owner'
    from organizations o
    where o.deleted_at is null
      and not exists (
        select from memberships m where m.organization_id = o.id and m.role = 'owner'
      )
  `
  await tx`delete from setup_links`
  return personId
}

/** Makes one more operator, owner of every organization: the way back in for whoever has the database. */
export async function createOwner(tx: Tx, actor: Actor, owner: NewOwner): Promise<string> {
  const personId = await insertOwner(tx, actor, owner)
  await tx`
    insert into memberships (organization_id, person_id, role)
    select id, ${personId}, 'owner'
    from organizations
    where deleted_at is null
  `
  await tx`delete from setup_links`
  return personId
}

async function insertOwner(
  tx: Tx,
  actor: Actor,
  { name, email, passwordHash }: NewOwner,
): Promise<string> {
  const { uuid } = newId('per')
  await tx`
    insert into people (id, name, email, password_hash, is_operator)
    values (${uuid}, ${name}, ${email}, ${passwordHash}, true)
  `
  await writeAudit(tx, actor, { action: 'owner.created', target: toId('per', uuid) })
  return uuid
}

/** Nobody else is added until the transaction ends; whoever signs in is not held up. */
async function lockPeople(tx: Tx): Promise<void> {
  await tx`lock table people in share row exclusive mode`
}

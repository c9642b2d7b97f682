import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { lockAccount } from '../sign-in/account.ts'
import { VisitProblem } from './flow.ts'
import type { Connection } from './schema.ts'

/** The identity of a person at a provider. */
export interface Identity {
  issuer: string
  subject: string
  /** The name of the provider. */
  provider: string
}

/** Returns the uuid of the account with an identity, and notes that it was used. */
export async function findConnectedAccount(
  tx: Tx,
  { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>,
): Promise<string | undefined> {
  const [row] = await tx<{ account_id: string }[]>`
    update openid_connections set last_used_at = now()
    where issuer = ${issuer} and subject = ${subject}
    returning account_id
  `
  return row?.account_id
}

/** Returns whether an account has an identity at an issuer. */
export async function isConnectedTo(
  sql: Queryable,
  accountId: string,
  issuer: string,
): Promise<boolean> {
  const [row] = await sql`
    select from openid_connections where account_id = ${accountId} and issuer = ${issuer}
  `
  return row !== undefined
}

/**
 * Connects an account with an identity. Throws the problem `otherAccount` if another account has
 * the identity, and `otherIdentity` if the account has another one at the issuer.
 */
export async function connect(
  tx: Tx,
  actor: Actor,
  accountId: string,
  { issuer, subject, provider }: Identity,
): Promise<void> {
  await lockAccount(tx, accountId)
  const { uuid, id } = newId('con')
  const inserted = await tx`
    insert into openid_connections (id, issuer, subject, account_id, provider)
    values (${uuid}, ${issuer}, ${subject}, ${accountId}, ${provider})
    on conflict do nothing
  `
  if (inserted.count === 0) {
    const owner = await findConnectedAccount(tx, { issuer, subject })
    if (owner === accountId) return
    throw new VisitProblem(owner === undefined ? 'otherIdentity' : 'otherAccount')
  }
  await writeAudit(tx, actor, { action: 'connection.created', target: id, details: { provider } })
}

/** Returns the connections of an account, oldest first. */
export async function listConnections(
  sql: Queryable,
  accountId: string,
): Promise<Omit<Connection, 'label'>[]> {
  const rows = await sql<Omit<Connection, 'label'>[]>`
    select
      id, provider, issuer, to_iso(created_at) as "createdAt", to_iso(last_used_at) as "lastUsedAt"
    from openid_connections
    where account_id = ${accountId}
    order by id
  `
  return rows.map(row => ({ ...row, id: toId('con', row.id) }))
}

/** Removes a connection of an account, which the caller has locked. Throws `not_found`. */
export async function removeConnection(
  tx: Tx,
  actor: Actor,
  { accountId, id }: { accountId: string; id: string },
): Promise<void> {
  const [removed] = await tx<{ provider: string }[]>`
    delete from openid_connections
    where account_id = ${accountId} and id = ${parseId('con', id) ?? null}
    returning provider
  `
  if (!removed) throw new Fault('not_found', 'None of your connections has this id')
  const { provider } = removed
  await writeAudit(tx, actor, { action: 'connection.removed', target: id, details: { provider } })
}

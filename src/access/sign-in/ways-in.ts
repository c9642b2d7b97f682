import { Fault } from '../../base/errors.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { Actor } from '../audit/audit.ts'
import { weakenSessions } from '../guard/sessions.ts'
import { withdrawInvitesOf } from './invites-of-account.ts'

/** Returns the issuers of the providers at which accounts can sign in. */
export type ListIssuers = (sql: Queryable) => Promise<readonly string[]>

/**
 * Throws `conflict` if an account can no longer sign in. Call it after a removal, in the same
 * transaction, which is then rolled back. The caller has locked the account.
 */
export async function requireWayIn(
  tx: Tx,
  accountId: string,
  listIssuers: ListIssuers,
): Promise<void> {
  // A connection outlives its provider.
  const issuers = await listIssuers(tx)
  const [row] = await tx<[{ has_way_in: boolean }]>`
    select
      exists (
        select
        from accounts
        where id = ${accountId} and password_hash is not null and is_password_usable(id)
      )
      or exists (
        select
        from openid_connections
        where account_id = ${accountId} and issuer = any(${toArray(issuers)}::text[])
      )
      or exists (
        select from passkeys where account_id = ${accountId} and disabled_at is null
      ) as has_way_in
  `
  if (row.has_way_in) return
  throw new Fault(
    'conflict',
    'This is the last way to sign in to the account. Add another one first.',
  )
}

/**
 * Removes the authenticator app of an account and its recovery codes. Sessions except `sessionId`
 * no longer prove a second factor.
 */
export async function removeSecondFactor(
  tx: Tx,
  accountId: string,
  sessionId?: string,
): Promise<void> {
  const removed = await tx`delete from totp_secrets where account_id = ${accountId}`
  await tx`delete from recovery_codes where account_id = ${accountId}`
  if (removed.count > 0) await weakenSessions(tx, accountId, sessionId)
}

/**
 * Removes everything but the password that gives access to an account, its tokens, and the invites
 * that it made.
 */
export async function removeOtherWaysIn(tx: Tx, actor: Actor, accountId: string): Promise<void> {
  await removeSecondFactor(tx, accountId)
  await tx`delete from passkeys where account_id = ${accountId}`
  await tx`delete from openid_connections where account_id = ${accountId}`
  await tx`delete from management_tokens where account_id = ${accountId}`
  await withdrawInvitesOf(tx, actor, accountId)
}

import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { weakenSessions } from '../guard/sessions.ts'

/**
 * Throws `conflict` if an account can no longer sign in. Call it after a removal, in the same
 * transaction, which is then rolled back. The caller has locked the account. A connection outlives
 * its provider, so `issuers` are those of the providers at which accounts can sign in.
 */
export async function requireWayIn(
  tx: Tx,
  accountId: string,
  issuers: readonly string[],
): Promise<void> {
  if ((await listLockedOut(tx, [accountId], issuers)).length === 0) return
  throw new Fault(
    'conflict',
    'This is the last way to sign in to the account. Add another one first.',
  )
}

/**
 * Returns those of the accounts that can sign in neither with a password or a passkey, nor at a
 * provider with one of the issuers.
 */
export async function listLockedOut(
  sql: Queryable,
  accountIds: readonly string[],
  issuers: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select a.id
    from accounts a
    where a.id = any(${toArray(accountIds)}::uuid[])
      and (a.password_hash is null or not is_password_usable(a.id))
      and not exists (
        select from passkeys p where p.account_id = a.id and p.disabled_at is null
      )
      and not exists (
        select
        from openid_connections c
        where c.account_id = a.id and c.issuer = any(${toArray(issuers)}::text[])
      )
  `
  return rows.map(({ id }) => id)
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
  await withdrawInvites(tx, actor, tx`i.invited_by = ${accountId}`)
}

/** Withdraws the invites `i` that a condition selects. Returns the number of open ones. */
export async function withdrawInvites(tx: Tx, actor: Actor, where: Fragment): Promise<number> {
  const withdrawn = await tx<{ id: string; organization_id: string; is_open: boolean }[]>`
    delete from invites i
    where ${where}
    returning i.id, i.organization_id, is_unexpired(i.expires_at, '7 days') as is_open
  `
  const open = withdrawn.filter(({ is_open }) => is_open)
  for (const { id, organization_id: organizationId } of open) {
    const target = toId('inv', id)
    await writeAudit(tx, actor, { action: 'invite.withdrawn', organizationId, target })
  }
  return open.length
}

import { toId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { isAllowedTo } from '../guard/credential-table.ts'
import { endSessions, readFactors } from '../guard/sessions.ts'
import { withdrawAllLinks } from './reset-links.ts'
import { forgetDevices } from './sign-in.ts'
import { removeOtherWaysIn } from './ways-in.ts'

/**
 * Gives an account to the person who has its e-mail address, as a trusted provider or the proxy
 * says. Somebody else may have entered the address before. So the first time removes everything
 * that signs the account in, and ends its sessions, its invites and its reset links. The caller has
 * locked the account and its organizations.
 *
 * Returns false, and changes nothing, if the account is an operator's, has a factor, or belongs to
 * an organization that requires one, to which it would give this person. It must be signed in
 * first.
 */
export async function proveEmail(
  tx: Tx,
  actor: Actor,
  { id: accountId, isOperator }: { id: string; isOperator: boolean },
): Promise<boolean> {
  const factors = await readFactors(tx, accountId)
  if (isOperator || !isAllowedTo('account.prove', { factors, isMultiFactor: false })) return false
  const strict = await tx`
    select
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.account_id = ${accountId} and o.requires_second_factor
    limit 1
  `
  if (strict.count > 0) return false
  const proven = await tx`
    update accounts set is_email_proven = true, password_hash = null
    where id = ${accountId} and not is_email_proven
  `
  if (proven.count === 0) return true
  await removeOtherWaysIn(tx, actor, accountId)
  await withdrawAllLinks(tx, actor, accountId)
  const sessionsEnded = await endSessions(tx, accountId)
  await forgetDevices(tx, accountId)
  await writeAudit(tx, actor, {
    action: 'account.proven',
    target: toId('per', accountId),
    details: { sessionsEnded },
  })
  return true
}

import { toId } from '../../base/ids.ts'
import type { Fragment, Tx } from '../../database/sql.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'

/** Withdraws the invites that management tokens of an account made which no longer exist. */
export async function withdrawInvitesOfEndedTokens(
  tx: Tx,
  actor: Actor,
  accountId: string,
): Promise<void> {
  const isOfEndedToken = tx`
    i.token_id is not null and not exists (
      select from management_tokens t where t.id = i.token_id
    )
  `
  await withdraw(tx, actor, tx`i.invited_by = ${accountId} and ${isOfEndedToken}`)
}

/** Withdraws all invites that an account made. */
export async function withdrawInvitesOf(tx: Tx, actor: Actor, accountId: string): Promise<void> {
  await withdraw(tx, actor, tx`i.invited_by = ${accountId}`)
}

/** Withdraws all invites of an organization. Returns the number of open ones. */
export async function withdrawInvitesTo(
  tx: Tx,
  actor: Actor,
  organizationId: string,
): Promise<number> {
  return withdraw(tx, actor, tx`i.organization_id = ${organizationId}`)
}

async function withdraw(tx: Tx, actor: Actor, where: Fragment): Promise<number> {
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

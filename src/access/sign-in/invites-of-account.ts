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

async function withdraw(tx: Tx, actor: Actor, where: Fragment): Promise<void> {
  const withdrawn = await tx<{ id: string; organization_id: string; is_open: boolean }[]>`
    delete from invites i
    where ${where}
    returning i.id, i.organization_id, i.expires_at > now() as is_open
  `
  for (const { id, organization_id: organizationId, is_open } of withdrawn) {
    if (!is_open) continue
    const target = toId('inv', id)
    await writeAudit(tx, actor, { action: 'invite.withdrawn', organizationId, target })
  }
}

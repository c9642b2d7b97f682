import { SERVER, writeAudit } from '../../access/audit/audit.ts'
import { toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell } from '../../database/secrets/secrets.ts'

/** The sealed column, for the rotation of APP_SECRET. */
export const SEALED_HOOKS = { table: 'hooks', columns: ['secret'] } as const

/** Returns the cell that the secret of a hook is sealed for. */
export function toSealedCell(hookId: string): SealedCell {
  return { table: SEALED_HOOKS.table, column: 'secret', rowId: hookId }
}

/** Turns off hooks whose secret cannot be opened, because nothing verifies their requests. */
export const HOOK_LOSS: SecretLoss = {
  ...SEALED_HOOKS,
  describe: count =>
    `Inbound hooks turned off: ${count}. Their secrets are lost. Enter that of each, and turn it on`,
  async drop(tx, ids) {
    const lost = await tx<{ id: string; projectId: string; organizationId: string }[]>`
      update hooks h set secret = null, is_on = false
      from projects p
      where h.id = any(${toArray(ids)}::uuid[]) and p.id = h.project_id
      returning h.id, h.project_id as "projectId", p.organization_id as "organizationId"
    `
    const details = { reason: 'Its secret was lost with the APP_SECRET' }
    for (const { id, ...place } of lost) {
      const target = toId('hok', id)
      await writeAudit(tx, SERVER, { action: 'hook.edited', ...place, target, details })
    }
  },
}

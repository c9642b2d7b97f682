import { SERVER, writeAudit } from '../../access/audit/audit.ts'
import { toId } from '../../base/ids.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell } from '../../database/secrets/secrets.ts'
import { newSigningSecret } from './signing.ts'

/** The sealed columns, for the rotation of APP_SECRET. */
export const SEALED_WEBHOOKS = {
  table: 'webhooks',
  columns: ['url', 'secret', 'previous_secret', 'own_request'],
} as const

/** Returns the cell that a secret of a webhook is sealed for. It can be opened only there. */
export function toSealedCell(
  column: (typeof SEALED_WEBHOOKS)['columns'][number],
  webhookId: string,
): SealedCell {
  return { table: SEALED_WEBHOOKS.table, column, rowId: webhookId }
}

/** Replaces a URL that cannot be opened. */
const LOST_URL = 'https://lost.invalid/'
const SECRETS_LOST =
  'Its URL, secret, own body and headers were lost with the APP_SECRET. Enter them, rotate the secret, then enable it'

/**
 * Disables webhooks whose secrets cannot be opened, until an admin enters a URL and rotates the
 * secret.
 */
export const WEBHOOK_LOSS: SecretLoss = {
  ...SEALED_WEBHOOKS,
  describe: count =>
    `Webhooks disabled: ${count}. Their URLs, secrets, own bodies and headers are lost. Enter those of each, rotate its secret, and enable it. Their pending deliveries are kept for 30 days`,
  async drop(tx, ids, secrets) {
    for (const id of ids) {
      const url = secrets.seal(LOST_URL, toSealedCell('url', id))
      const secret = secrets.seal(newSigningSecret(), toSealedCell('secret', id))
      const [lost] = await tx<{ projectId: string; organizationId: string }[]>`
        update webhooks w set
          url = ${url}, secret = ${secret}, previous_secret = null, previous_until = null, own_request = null,
          disabled_at = coalesce(w.disabled_at, now()), disabled_reason = ${SECRETS_LOST}, updated_at = now()
        from projects p
        where w.id = ${id} and p.id = w.project_id
        returning w.project_id as "projectId", p.organization_id as "organizationId"
      `
      if (!lost) continue
      const details = { reason: SECRETS_LOST }
      const target = toId('whk', id)
      await writeAudit(tx, SERVER, { action: 'webhook.disabled', ...lost, target, details })
    }
  },
}

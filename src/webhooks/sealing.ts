import { SERVER, writeAudit } from '../audit/audit.ts'
import { toId } from '../ids.ts'
import type { SecretLoss } from '../secrets/reset.ts'
import type { SealedCell } from '../secrets/secrets.ts'
import { newSigningSecret } from './signing.ts'

/** The sealed columns, for the rotation of the APP_SECRET. */
export const SEALED_WEBHOOKS = {
  table: 'webhooks',
  columns: ['url', 'secret', 'previous_secret'],
} as const

/** Where a webhook keeps a secret: what is sealed there opens nowhere else. */
export function toPlace(
  column: (typeof SEALED_WEBHOOKS)['columns'][number],
  webhookId: string,
): SealedCell {
  return { table: SEALED_WEBHOOKS.table, column, rowId: webhookId }
}

/** Takes the place of a URL that nobody can read. */
const LOST_URL = 'https://lost.invalid/'
const REASON =
  'Its address and secret were lost with the APP_SECRET: enter its URL, rotate its secret, then enable it'

/** Disables webhooks that nobody can open, until an admin enters URL and secret again. */
export const WEBHOOK_LOSS: SecretLoss = {
  ...SEALED_WEBHOOKS,
  describe: count =>
    `${count} webhooks are disabled: their URLs and secrets are gone. Enter the URL of each, rotate its secret and enable it; what waits for them is kept for 30 days`,
  async drop(tx, ids, secrets) {
    for (const id of ids) {
      const url = secrets.seal(LOST_URL, toPlace('url', id))
      const secret = secrets.seal(newSigningSecret(), toPlace('secret', id))
      const [lost] = await tx<{ projectId: string; organizationId: string }[]>`
        update webhooks w set
          url = ${url}, secret = ${secret}, previous_secret = null, previous_until = null,
          disabled_at = coalesce(w.disabled_at, now()), disabled_reason = ${REASON}, updated_at = now()
        from projects p
        where w.id = ${id} and p.id = w.project_id
        returning w.project_id as "projectId", p.organization_id as "organizationId"
      `
      if (!lost) continue
      const details = { reason: REASON }
      const target = toId('whk', id)
      await writeAudit(tx, SERVER, { action: 'webhook.disabled', ...lost, target, details })
    }
  },
}

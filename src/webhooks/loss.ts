import { SERVER, writeAudit } from '../audit/audit.ts'
import type { Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import type { Loss } from '../secrets/reset.ts'
import { newSigningSecret } from './signing.ts'
import { SEALED_WEBHOOKS, toPlace } from './webhooks.ts'

/** An address that is none, in place of one that nobody can read. */
const NOWHERE = 'https://lost.invalid/'
const REASON =
  'Its address and secret were lost with the APP_SECRET: enter its URL, rotate its secret, then enable it'

/** What becomes of webhooks that nobody can open: they are disabled, and wait for an address and a secret. */
export const WEBHOOK_LOSS: Loss = {
  ...SEALED_WEBHOOKS,
  what: count =>
    `${count} webhooks are disabled: their URLs and secrets are gone. Enter the URL of each, rotate its secret and enable it; what waits for them is kept for 30 days`,
  async drop(tx, ids, secrets) {
    for (const id of ids) {
      const url = secrets.seal(NOWHERE, toPlace('url', id))
      const secret = secrets.seal(newSigningSecret(), toPlace('secret', id))
      const [lost] = await tx<{ project_id: string; organization_id: string }[]>`
        update webhooks w set
          url = ${url}, secret = ${secret}, previous_secret = null, previous_until = null,
          disabled_at = coalesce(w.disabled_at, now()), disabled_reason = ${REASON}, updated_at = now()
        from projects p
        where w.id = ${id} and p.id = w.project_id
        returning w.project_id, p.organization_id
      `
      if (lost) await audit(tx, id, lost)
    }
  },
}

async function audit(
  tx: Tx,
  id: string,
  { project_id, organization_id }: { project_id: string; organization_id: string },
): Promise<void> {
  await writeAudit(tx, SERVER, {
    action: 'webhook.disabled',
    organizationId: organization_id,
    projectId: project_id,
    target: toId('whk', id),
    details: { reason: REASON },
  })
}

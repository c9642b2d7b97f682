import type { CallOn } from '../../access/guard/guard.ts'
import { toRequester } from '../../access/guard/admitted.ts'
import { authorize } from '../../access/guard/permissions.ts'
import type { WebhookType } from './schema.ts'
import { toWebhookUuid } from './webhooks.ts'

/** Throws `forbidden` for a webhook of the audit log, unless the request may read that log. */
export function requireTypeAccess(
  { admitted, role }: CallOn<'project'>,
  type: WebhookType | undefined,
): void {
  if (type !== 'audit.entry') return
  authorize(toRequester(admitted), 'audit.read', { kind: 'organization', role })
}

/**
 * Throws `forbidden` for a token that is limited to projects, if the webhook with this public id is
 * of the audit log.
 */
export async function requireWebhookAccess(call: CallOn<'project'>, id: string): Promise<void> {
  if (!call.admitted.token?.isLimited) return
  // The type of a webhook never changes.
  const [found] = await call.pool.run(
    sql => sql<{ type: WebhookType }[]>`
      select type from webhooks where project_id = ${call.projectId} and id = ${toWebhookUuid(id)}
    `,
  )
  requireTypeAccess(call, found?.type)
}

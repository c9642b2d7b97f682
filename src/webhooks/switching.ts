import type { Tx } from '../db/sql.ts'
import { audit, type Editor } from './editing.ts'
import type { Queue } from './queue.ts'
import { noWebhook, toWebhookUuid } from './webhooks.ts'

/** It is sent events again, as new, and what waited for it is due. */
export async function enableWebhook(
  tx: Tx,
  editor: Editor,
  id: string,
  queue: Queue,
): Promise<void> {
  const uuid = toWebhookUuid(id)
  const enabled = await tx`
    update webhooks set
      disabled_at = null, disabled_reason = null,
      failures = 0, failing_since = null, pauses = 0, paused_until = null, updated_at = now()
    where project_id = ${editor.projectId} and id = ${uuid} and deleted_at is null
  `
  if (enabled.count === 0) throw noWebhook()
  await queue.resume(tx, { projectId: editor.projectId, targetId: uuid })
  await audit(tx, editor, 'webhook.enabled', uuid)
}

/** It is sent nothing until it is enabled; `reason` is for people. */
export async function disableWebhook(
  tx: Tx,
  editor: Editor,
  { id, reason }: { id: string; reason: string },
): Promise<void> {
  const uuid = toWebhookUuid(id)
  const found = await tx<{ was_enabled: boolean }[]>`
    with held as (
      select project_id, id, disabled_at is null as was_enabled
      from webhooks
      where project_id = ${editor.projectId} and id = ${uuid} and deleted_at is null
      for update
    )
    update webhooks w set
      disabled_at = coalesce(w.disabled_at, now()),
      disabled_reason = coalesce(w.disabled_reason, ${reason}),
      updated_at = now()
    from held h
    where w.project_id = h.project_id and w.id = h.id
    returning h.was_enabled
  `
  const [row] = found
  if (!row) throw noWebhook()
  if (row.was_enabled) await audit(tx, editor, 'webhook.disabled', uuid, { reason })
}

import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { keepAttempt } from './attempts.ts'
import { post, type DeliveryParts } from './delivery.ts'
import { audit, type Editor } from './editing.ts'
import { toTestMessageId, toTestRequest } from './message.ts'
import { findReceivers, toReceiver } from './receiver.ts'
import type { Attempt } from './schema.ts'
import { toVerdict } from './verdict.ts'
import { noWebhook, toWebhookUuid } from './webhooks.ts'

/** Nobody needs more, and nobody shall use us to knock at somebody's door. */
const EVERY_S = 3

/** Sends a `webhook.test` at once, to a paused or disabled webhook, too. Its success counts, its failure does not. */
export async function testWebhook(
  parts: DeliveryParts,
  editor: Editor,
  id: string,
): Promise<Attempt> {
  const { pool, secrets, egress } = parts
  const { projectId } = editor
  const webhookId = toWebhookUuid(id)
  await transact(pool, async tx => {
    const [row] = await tx<{ may: boolean }[]>`
      select coalesce(tested_at < now() - make_interval(secs => ${EVERY_S}), true) as may
      from webhooks
      where project_id = ${projectId} and id = ${webhookId} and deleted_at is null
      for no key update
    `
    if (!row) throw noWebhook()
    if (!row.may) {
      throw new Fault('rate_limited', `One test every ${EVERY_S} s: wait a moment`, {
        'Retry-After': String(EVERY_S),
      })
    }
    await tx`
      update webhooks set tested_at = now() where project_id = ${projectId} and id = ${webhookId}
    `
    await audit(tx, editor, 'webhook.tested', webhookId)
  })
  const target = { projectId, targetId: webhookId }
  const [row] = await pool.run(sql => findReceivers(sql, [target], { mayProbe: false }))
  if (!row) throw noWebhook()
  const receiver = toReceiver(row, target, secrets)
  const request = toTestRequest(receiver, receiver.origin, receiver.nowMs)
  const attemptId = newId('att').uuid
  const messageId = toTestMessageId(attemptId)
  const result = await post(egress, receiver, { ...request, id: messageId })
  const verdict = toVerdict(result, receiver.nowMs)
  return transact(pool, tx =>
    keepAttempt(tx, {
      id: attemptId,
      projectId,
      webhookId,
      eventId: null,
      number: 1,
      startedAt: new Date(receiver.nowMs),
      preset: receiver.preset,
      request,
      result,
      verdict,
    }),
  )
}

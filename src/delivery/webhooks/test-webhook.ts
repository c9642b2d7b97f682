import { Fault } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { auditWebhook, type Editor } from './editing.ts'
import { toTestMessageId, toTestRequest } from './message.ts'
import { storeAttempt } from './recording.ts'
import type { Attempt } from './webhook-schema.ts'
import { makeAttempt, type SenderParts } from './sender.ts'
import { findWebhookTargets, openWebhookTarget } from './target.ts'
import { lockWebhook, webhookNotFound } from './webhooks.ts'

/**
 * The shortest time between two tests of a webhook. It keeps tests from being used to flood a third
 * party.
 */
const TEST_INTERVAL_S = 3

/**
 * Sends a `webhook.test` now, even if the webhook is paused or disabled. A success resets the
 * failure counters; a failure does not count. Throws `not_found` and `rate_limited`.
 */
export async function testWebhook(
  { pool, secrets, egress }: SenderParts,
  editor: Editor,
  id: string,
): Promise<Attempt> {
  const targetId = await transact(pool, tx => reserveTest(tx, editor, id))
  const ids = { projectId: editor.projectId, targetId }
  const [found] = await pool.run(sql => findWebhookTargets(sql, [ids]))
  if (!found) throw webhookNotFound()
  const target = openWebhookTarget(found.row, ids, secrets)
  const attemptId = newId('att').uuid
  const made = await makeAttempt(egress, target, {
    id: attemptId,
    messageId: toTestMessageId(attemptId),
    kind: 'webhook.test',
    eventId: null,
    hasUser: false,
    number: 1,
    request: toTestRequest(target, target.context, target.nowMs),
  })
  return transact(pool, tx => storeAttempt(tx, made))
}

/**
 * Records that a test is sent now. Returns the webhook's uuid. Throws `rate_limited` within three
 * seconds of the last test.
 */
async function reserveTest(tx: Tx, editor: Editor, id: string): Promise<string> {
  const { id: uuid, testedAt, now } = await lockWebhook(tx, editor.projectId, id)
  if (testedAt && Math.abs(now.getTime() - testedAt.getTime()) <= TEST_INTERVAL_S * 1_000) {
    throw new Fault(
      'rate_limited',
      `A webhook can be tested every ${TEST_INTERVAL_S} seconds. Try again shortly`,
      {
        'Retry-After': String(TEST_INTERVAL_S),
      },
    )
  }
  await tx`
    update webhooks set tested_at = now() where project_id = ${editor.projectId} and id = ${uuid}
  `
  await auditWebhook(tx, editor, 'webhook.tested', uuid)
  return uuid
}

import type { DeliveryKind } from '../outbox/kind.ts'
import { dispatchWebhooks, explainNoWebhookDelivery, sweepWebhooks } from './dispatch.ts'
import { createWebhookSender, WEBHOOK_TIMEOUT_MS, type SenderParts } from './sender.ts'
import { getWebhookNames } from './webhooks.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/**
 * The delay before each attempt, in ms, ± 20 %: the schedule of Standard Webhooks, three days in
 * all.
 */
export const RETRY_SCHEDULE_MS: readonly number[] = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]
/** Creates the delivery kind for webhooks. */
export function createWebhookKind(parts: SenderParts): DeliveryKind {
  return {
    name: 'webhook',
    dispatch: dispatchWebhooks,
    leasesNew: true,
    send: createWebhookSender(parts),
    getTargetNames: getWebhookNames,
    explainNoDelivery: explainNoWebhookDelivery,
    sweepTargets: sweepWebhooks,
    schedule: RETRY_SCHEDULE_MS,
    perTarget: 8,
    timeoutMs: WEBHOOK_TIMEOUT_MS,
    leaseMs: 2 * WEBHOOK_TIMEOUT_MS,
  }
}

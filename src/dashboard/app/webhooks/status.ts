import { toPlural } from '../plural.ts'
import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'

/** A sentence with a time in it, and perhaps with a reason after it. */
interface Sentence {
  before: string
  at: string | null
  reason?: string | null
  after: string
}

/** The status of a webhook. */
export interface WebhookStatus {
  /** One or two words. */
  word: string
  tone: 'good' | 'bad' | 'plain'
  /** An explanation, if needed. */
  sentence?: Sentence | undefined
  /** Explains that its queue is full. */
  backlogFull?: Sentence | undefined
}

export function toStatus(webhook: Webhook): WebhookStatus {
  const { backlogFullAt = null } = webhook
  const after = '. New events are not queued. Recover them once the queue has room.'
  const backlogFull =
    backlogFullAt === null ? undefined : { before: 'Queue full since', at: backlogFullAt, after }
  return { ...toBreakerStatus(webhook), backlogFull }
}

function toBreakerStatus({
  isEnabled,
  disabledAt,
  disabledReason,
  breaker,
}: Webhook): WebhookStatus {
  const { state, failures, failingSince: at, pausedUntil } = breaker
  const times = toPlural(failures, 'failure', 'failures in a row')
  if (!isEnabled) {
    const after = '. No events are sent until you enable it.'
    const sentence = { before: 'Disabled', at: disabledAt, reason: disabledReason, after }
    return { word: 'Disabled', tone: 'bad', sentence }
  }
  if (state === 'limited') {
    const after = ', as the receiver asked. Pending events are sent then.'
    return {
      word: 'Waiting',
      tone: 'plain',
      sentence: { before: 'Waits until', at: pausedUntil, after },
    }
  }
  if (state === 'paused') {
    const after = `, after ${times}. Pending events are sent then.`
    const sentence = { before: 'Paused until', at: pausedUntil, after }
    return { word: 'Paused', tone: 'bad', sentence }
  }
  if (state === 'closed' && failures === 0) return { word: 'Active', tone: 'good' }
  const before = `${times} since`
  if (state !== 'probing')
    return { word: 'Failing', tone: 'bad', sentence: { before, at, after: '.' } }
  const after = '. The pause is over. The next delivery shows whether it works again.'
  return { word: 'Retrying', tone: 'plain', sentence: { before, at, after } }
}

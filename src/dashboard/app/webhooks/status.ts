import { toPlural } from '../locale.ts'
import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'

export interface WebhookStatus {
  /** One or two words. */
  word: string
  tone: 'good' | 'bad' | 'plain'
  /** An explanation, if needed: what stands before a time, the time, and what follows it. */
  sentence?: readonly [before: string, at: string | null, after: string]
}

/** Describes whether a webhook works. */
export function toStatus(webhook: Webhook): WebhookStatus {
  const { isEnabled, disabledAt, disabledReason, breaker } = webhook
  const { state, failures, failingSince, pausedUntil } = breaker
  const times = toPlural(failures, 'failure', 'failures in a row')
  if (!isEnabled) {
    const reason = disabledReason ? `: ${disabledReason}` : ''
    const after = `${reason}. No events are sent until you enable it.`
    return { word: 'Disabled', tone: 'bad', sentence: ['Disabled', disabledAt, after] }
  }
  if (state === 'limited') {
    const after = ', as the receiver asked. Pending events are sent then.'
    return { word: 'Waiting', tone: 'plain', sentence: ['Waits until', pausedUntil, after] }
  }
  if (state === 'paused') {
    const after = `, after ${times}. Pending events are sent then.`
    return { word: 'Paused', tone: 'bad', sentence: ['Paused until', pausedUntil, after] }
  }
  if (state === 'closed' && failures === 0) return { word: 'Active', tone: 'good' }
  const before = `${times} since`
  if (state !== 'probing')
    return { word: 'Failing', tone: 'bad', sentence: [before, failingSince, '.'] }
  const after = '. The pause is over. The next delivery shows whether it works again.'
  return { word: 'Retrying', tone: 'plain', sentence: [before, failingSince, after] }
}

import type { Webhook } from './api.ts'

/** A sentence around a moment. */
interface Sentence {
  before: string
  at: string | null
  after: string
}

/** How a webhook is doing. */
export interface WebhookStatus {
  /** In a word or two. */
  word: string
  tone: 'good' | 'bad' | 'plain'
  /** What that means, where there is something to say. */
  sentence?: Sentence | undefined
  /** That more waits for it than is kept. */
  backlogFull?: Sentence | undefined
}

export function toStatus(webhook: Webhook): WebhookStatus {
  const { backlogFullAt = null } = webhook
  const after = ': what happens meanwhile is not queued. Recover it when there is room.'
  const backlogFull =
    backlogFullAt === null
      ? undefined
      : { before: 'Too much waits since', at: backlogFullAt, after }
  return { ...toBreakerStatus(webhook), backlogFull }
}

function toBreakerStatus({
  isEnabled,
  disabledAt,
  disabledReason,
  breaker,
}: Webhook): WebhookStatus {
  const { state, failures, failingSince, pausedUntil } = breaker
  const times = `${failures.toLocaleString()} ${failures === 1 ? 'failure' : 'failures in a row'}`
  if (!isEnabled) {
    const why = disabledReason === null ? '' : `: ${disabledReason}`
    const after = `${why}. Nothing is sent until it is enabled.`
    return {
      word: 'Disabled',
      tone: 'bad',
      sentence: { before: 'Disabled', at: disabledAt, after },
    }
  }
  if (state === 'paused') {
    const after = `, after ${times}. What waits is sent then.`
    const sentence = { before: 'Left alone until', at: pausedUntil, after }
    return { word: 'Paused', tone: 'bad', sentence }
  }
  if (state === 'closed' && failures === 0) return { word: 'On', tone: 'good' }
  const isProbing = state === 'probing'
  const after = isProbing ? '. The pause is over, and the next delivery decides.' : '.'
  const sentence = { before: `${times} since`, at: failingSince, after }
  return isProbing
    ? { word: 'Trying again', tone: 'plain', sentence }
    : { word: 'Failing', tone: 'bad', sentence }
}

import type { MessageKey } from '../locales/catalogue.ts'
import { toOwnLanguage } from '../locales/sentences.ts'
import { t } from '../locales/translate.tsx'
import type { Webhook } from './api.ts'

/** A message with a time in it. */
interface Sentence {
  key: MessageKey
  at: string | null
  values: { failures?: string; reason?: string }
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
  const backlogFull =
    backlogFullAt === null
      ? undefined
      : ({ key: 'webhooks.queueFull', at: backlogFullAt, values: {} } as const)
  return { ...toBreakerStatus(webhook), backlogFull }
}

function toBreakerStatus({
  isEnabled,
  disabledAt,
  disabledReason,
  breaker,
}: Webhook): WebhookStatus {
  const { state, failures: count, failingSince, pausedUntil } = breaker
  const failures = t('webhooks.failures', { count })
  if (!isEnabled) {
    const sentence: Sentence =
      disabledReason === null
        ? { key: 'webhooks.disabledAt', at: disabledAt, values: {} }
        : {
            key: 'webhooks.disabledFor',
            at: disabledAt,
            values: { reason: toOwnLanguage(disabledReason) },
          }
    return { word: t('webhooks.disabled'), tone: 'bad', sentence }
  }
  if (state === 'paused') {
    const sentence = { key: 'webhooks.pausedUntil', at: pausedUntil, values: { failures } } as const
    return { word: t('webhooks.paused'), tone: 'bad', sentence }
  }
  if (state === 'closed' && count === 0) return { word: t('webhooks.active'), tone: 'good' }
  const at = failingSince
  return state === 'probing'
    ? {
        word: t('webhooks.retrying'),
        tone: 'plain',
        sentence: { key: 'webhooks.retryingSince', at, values: { failures } },
      }
    : {
        word: t('webhooks.failing'),
        tone: 'bad',
        sentence: { key: 'webhooks.failingSince', at, values: { failures } },
      }
}

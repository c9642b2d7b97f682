import type { MessageKey } from '../locales/catalogue.ts'
import { t } from '../locales/translate.tsx'
import type { Webhook } from './api.ts'

type Preset = Webhook['preset']

/** The receivers that are services, by their own names. */
const SERVICES: Readonly<Record<Exclude<Preset, 'standard'>, string>> = {
  slack: 'Slack',
  discord: 'Discord',
  telegram: 'Telegram',
  ntfy: 'ntfy',
}
/** The form of the URL of each receiver: an example, or an explanation. */
const HINTS: Readonly<Record<Preset, { example: string } | { key: MessageKey }>> = {
  standard: { key: 'webhooks.standardHint' },
  slack: { example: 'https://hooks.slack.com/services/…' },
  discord: { example: 'https://discord.com/api/webhooks/…' },
  telegram: { example: 'https://api.telegram.org/bot…/sendMessage?chat_id=…' },
  ntfy: { key: 'webhooks.ntfyHint' },
}

/** The supported receivers. */
export const PRESETS = Object.keys(HINTS) as readonly Preset[]

/** Returns the name of a receiver. */
export function toPresetName(preset: Preset): string {
  return preset === 'standard' ? t('webhooks.standard') : SERVICES[preset]
}

/** Returns the hint for the URL of a receiver. */
export function toUrlHint(preset: Preset): string {
  const hint = HINTS[preset]
  return 'key' in hint ? t(hint.key) : hint.example
}

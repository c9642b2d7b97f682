import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'

/** The supported receivers, with a hint for their URLs. */
export const PRESETS: Readonly<Record<Webhook['preset'], { text: string; hint: string }>> = {
  standard: {
    text: 'Your own server',
    hint: 'Events are sent as JSON in the Standard Webhooks format.',
  },
  slack: { text: 'Slack', hint: 'https://hooks.slack.com/services/…' },
  discord: { text: 'Discord', hint: 'https://discord.com/api/webhooks/…' },
  telegram: {
    text: 'Telegram',
    hint: 'https://api.telegram.org/bot…/sendMessage?chat_id=…',
  },
  ntfy: { text: 'ntfy', hint: 'The URL of a topic, such as https://ntfy.sh/my-topic' },
}

import type { Webhook } from './api.ts'

/** Who can receive, and what their address is like. */
export const PRESETS: Readonly<Record<Webhook['preset'], { text: string; hint: string }>> = {
  standard: {
    text: 'Your own server',
    hint: 'Events are posted here as JSON, as Standard Webhooks has it.',
  },
  slack: { text: 'Slack', hint: 'https://hooks.slack.com/services/…' },
  discord: { text: 'Discord', hint: 'https://discord.com/api/webhooks/…' },
  telegram: {
    text: 'Telegram',
    hint: 'https://api.telegram.org/bot…/sendMessage?chat_id=…',
  },
  ntfy: { text: 'ntfy', hint: 'The address of a topic, like https://ntfy.sh/my-topic' },
}

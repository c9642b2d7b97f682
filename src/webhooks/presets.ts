/** The formats of a body: Standard Webhooks, or what a service accepts. */
export const PRESETS = ['standard', 'slack', 'discord', 'telegram', 'ntfy'] as const
export type Preset = (typeof PRESETS)[number]

/** The fields of an event that presets use. */
export interface PresetEvent {
  title: string
  description: string | null
  icon: string | null
  channelName: string
  projectName: string
  timestamp: string
  tags: readonly string[]
}

/** The URL and the body of a request. */
export interface WebhookRequest {
  url: string
  body: string
}

type PresetFormat = (url: URL, event: PresetEvent) => { url?: string; body: object }

const FORMATS: Record<Exclude<Preset, 'standard'>, PresetFormat> = {
  // Plain text only, so that nothing in an event becomes a mention, a link or formatting.
  slack: (_, event) => ({
    body: {
      text: escapeSlack(toHeadline(event)),
      blocks: [
        { type: 'header', text: toPlainText(cut(toHeadline(event), 150)) },
        ...(event.description
          ? [{ type: 'section', text: toPlainText(cut(event.description, 3000)) }]
          : []),
        { type: 'context', elements: [toPlainText(cut(toFooter(event), 300))] },
      ],
    },
  }),
  discord: (_, event) => ({
    body: {
      allowed_mentions: { parse: [] },
      embeds: [
        {
          title: cut(escapeMarkdown(toHeadline(event)), 256),
          ...(event.description && { description: cut(escapeMarkdown(event.description), 4096) }),
          footer: { text: cut(toFooter(event), 2048) },
          timestamp: event.timestamp,
        },
      ],
    },
  }),
  telegram: (url, event) => ({
    body: {
      chat_id: url.searchParams.get('chat_id'),
      text: cut(toText(event), 4096),
      link_preview_options: { is_disabled: true },
    },
  }),
  // ntfy takes JSON at the root of the server. The topic is the last segment of the URL.
  ntfy: (url, event) => {
    const [topic = '', ...base] = url.pathname.split('/').filter(Boolean).reverse()
    return {
      url: `${url.origin}${['', ...base.reverse(), ''].join('/')}${url.search}`,
      body: {
        topic: decodeURIComponent(topic),
        title: cut(toHeadline(event), 250),
        message: cutBytes(event.description ?? toFooter(event), 4000),
        tags: event.tags.slice(0, 5),
      },
    }
  },
}

/** Formats the request for a service. */
export function formatForPreset(
  preset: Exclude<Preset, 'standard'>,
  url: string,
  event: PresetEvent,
): WebhookRequest {
  const request = FORMATS[preset](new URL(url), event)
  return { url: request.url ?? url, body: JSON.stringify(request.body) }
}

/** Returns why a service cannot use a URL, as a sentence; undefined if it can. */
export function findPresetProblem(preset: Preset, url: URL): string | undefined {
  if (preset === 'telegram' && !url.searchParams.get('chat_id')) {
    return 'For Telegram, the URL must be https://api.telegram.org/bot…/sendMessage?chat_id=…'
  }
  if (preset === 'ntfy' && !/^(\/[\w-]+)*\/[\w-]{1,64}$/.test(url.pathname)) {
    return 'For ntfy, the URL must end with the topic, like https://ntfy.sh/my-topic'
  }
  return undefined
}

function toHeadline({ icon, title }: PresetEvent): string {
  return icon === null ? title : `${icon} ${title}`
}

function toFooter({ channelName, projectName }: PresetEvent): string {
  return `${channelName} · ${projectName}`
}

function toText(event: PresetEvent): string {
  return [toHeadline(event), event.description, toFooter(event)].filter(Boolean).join('\n\n')
}

function toPlainText(text: string) {
  return { type: 'plain_text', text, emoji: false }
}

function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+.!|~>:@<-]/g, '\\$&')
}

/** Cuts text to a number of UTF-16 units, which services count, without splitting a character. */
function cut(text: string, units: number): string {
  return text.length <= units
    ? text
    : `${text.slice(0, units - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

function cutBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text
  const start = Buffer.from(text).subarray(0, bytes - 3)
  return `${new TextDecoder().decode(start).replace(/\ufffd+$/, '')}…`
}

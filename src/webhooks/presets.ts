/** The forms of a body: Standard Webhooks, or what a service accepts. */
export const PRESETS = ['standard', 'slack', 'discord', 'telegram', 'ntfy'] as const
export type Preset = (typeof PRESETS)[number]

/** The parts of an event that services get. */
export interface PresetEvent {
  title: string
  description: string | null
  icon: string | null
  channelName: string
  projectName: string
  timestamp: string
  tags: readonly string[]
}

/** A request in the form of a preset. */
export interface WebhookRequest {
  url: string
  body: string
}

type PresetFormat = (url: URL, notice: PresetEvent) => { url?: string; body: object }

const FORMATS: Record<Exclude<Preset, 'standard'>, PresetFormat> = {
  // Plain text throughout, so that no part of an event becomes a mention, a link or a style.
  slack: (_, notice) => ({
    body: {
      text: escapeSlack(toHeadline(notice)),
      blocks: [
        { type: 'header', text: toPlainText(cut(toHeadline(notice), 150)) },
        ...(notice.description
          ? [{ type: 'section', text: toPlainText(cut(notice.description, 3000)) }]
          : []),
        { type: 'context', elements: [toPlainText(cut(toFooter(notice), 300))] },
      ],
    },
  }),
  discord: (_, notice) => ({
    body: {
      allowed_mentions: { parse: [] },
      embeds: [
        {
          title: cut(escapeMarkdown(toHeadline(notice)), 256),
          ...(notice.description && { description: cut(escapeMarkdown(notice.description), 4096) }),
          footer: { text: cut(toFooter(notice), 2048) },
          timestamp: notice.timestamp,
        },
      ],
    },
  }),
  telegram: (url, notice) => ({
    body: {
      chat_id: url.searchParams.get('chat_id'),
      text: cut(toText(notice), 4096),
      link_preview_options: { is_disabled: true },
    },
  }),
  // JSON is posted to the server's root, and names the topic, which is the end of the URL.
  ntfy: (url, notice) => {
    const [topic = '', ...base] = url.pathname.split('/').filter(Boolean).reverse()
    return {
      url: `${url.origin}${['', ...base.reverse(), ''].join('/')}${url.search}`,
      body: {
        topic: decodeURIComponent(topic),
        title: cut(toHeadline(notice), 250),
        message: cutBytes(notice.description ?? toFooter(notice), 4000),
        tags: notice.tags.slice(0, 5),
      },
    }
  },
}

/** The request for a service. */
export function formatForPreset(
  preset: Exclude<Preset, 'standard'>,
  url: string,
  notice: PresetEvent,
): WebhookRequest {
  const shaped = FORMATS[preset](new URL(url), notice)
  return { url: shaped.url ?? url, body: JSON.stringify(shaped.body) }
}

/** The fault of a service's URL, as a sentence. Undefined for a good one. */
export function findPresetProblem(preset: Preset, url: URL): string | undefined {
  if (preset === 'telegram' && !url.searchParams.get('chat_id')) {
    return 'For Telegram it must be https://api.telegram.org/bot…/sendMessage?chat_id=…'
  }
  if (preset === 'ntfy' && !/^(\/[\w-]+)*\/[\w-]{1,64}$/.test(url.pathname)) {
    return 'For ntfy it must end with the topic, like https://ntfy.sh/my-topic'
  }
  return undefined
}

function toHeadline({ icon, title }: PresetEvent): string {
  return icon === null ? title : `${icon} ${title}`
}

function toFooter({ channelName, projectName }: PresetEvent): string {
  return `${channelName} · ${projectName}`
}

function toText(notice: PresetEvent): string {
  return [toHeadline(notice), notice.description, toFooter(notice)].filter(Boolean).join('\n\n')
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

/** Cuts to UTF-16 units, which services count, and never within a character. */
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

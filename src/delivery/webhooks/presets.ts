import { takeStart, isInvisible } from '../../base/display-text.ts'
import type { Level } from '../../log/channels/level.ts'

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
  level?: Level
  url?: string
}

/** The URL and the body of a request. */
export interface WebhookRequest {
  url: string
  body: string
}

/** The longest JSON that ntfy reads is twice its longest message, 4,096 bytes. */
const MAX_NTFY_JSON = 8_000
const MAX_NTFY_MESSAGE = 4_000
const MAX_TELEGRAM = 4_096
const MAX_URL = 2_048
/** The longest text of a section of Slack. */
const MAX_SECTION = 3_000

/** The colors of levels in Slack and Discord, as RGB. */
const COLORS: Partial<Record<Level, number>> = { high: 0xe8912d, critical: 0xd93025 }
/** The priorities of ntfy. Its default is 3. */
const PRIORITIES: Partial<Record<Level, number>> = { low: 2, high: 4, critical: 5 }

/** The fields of presets that say whom a message reaches. An own body cannot change them. */
const KEPT = ['allowed_mentions', 'chat_id', 'topic']
const DISCORD_HOST = /(^|\.)discord(app)?\.com\.?$/

type PresetFormat = (url: URL, event: PresetEvent) => { url?: string; body: object }

const FORMATS: Record<Exclude<Preset, 'standard'>, PresetFormat> = {
  // Plain text, so that nothing but the url becomes a mention, a link or formatting.
  slack: (_, event) => {
    const text = escapeSlack(toHeadline(event))
    const header = { type: 'header', text: toPlainText(cut(toHeadline(event), 150)) }
    const others = [
      ...(event.description
        ? [{ type: 'section', text: toPlainText(cut(event.description, MAX_SECTION)) }]
        : []),
      ...toSlackLink(event),
      { type: 'context', elements: [toPlainText(cut(toFooter(event), 300))] },
    ]
    const color = event.level && COLORS[event.level]
    // Slack shows the text only in notifications. Receivers without blocks show it as the message.
    if (color === undefined) return { body: { text, blocks: [header, ...others] } }
    // Only attachments have a color.
    const attachments = [{ color: `#${color.toString(16)}`, blocks: others }]
    return { body: { text, blocks: [header], attachments } }
  },
  discord: (_, event) => ({
    body: {
      allowed_mentions: { parse: [] },
      embeds: [
        {
          // All texts of an embed together have at most 6,000.
          title: cutMarkdown(toHeadline(event), 256),
          ...toDiscordLink(event),
          ...(event.description && { description: cutMarkdown(event.description, 4096) }),
          footer: { text: cut(toFooter(event), 1024) },
          timestamp: event.timestamp,
          ...(event.level && { color: COLORS[event.level] }),
        },
      ],
    },
  }),
  telegram: (url, event) => ({
    body: {
      chat_id: url.searchParams.get('chat_id'),
      text: toText(event),
      link_preview_options: { is_disabled: true },
    },
  }),
  // ntfy takes JSON at the root of the server. The topic is the last segment of the URL.
  ntfy: (url, event) => {
    const [topic = '', ...base] = url.pathname.split('/').filter(Boolean).reverse()
    const others = {
      topic,
      title: cut(toHeadline(event), 250),
      tags: event.tags.filter(tag => !isInvisible(tag)).slice(0, 5),
      ...(event.level && { priority: PRIORITIES[event.level] }),
      click: toLink(event),
    }
    const text = event.description ?? toFooter(event)
    return {
      url: `${url.origin}${['', ...base.reverse(), ''].join('/')}${url.search}`,
      body: { ...others, message: cutMessage(text, MAX_NTFY_JSON - countJsonBytes(others)) },
    }
  },
}

/** Formats the request for a service. */
export function formatForPreset(
  preset: Exclude<Preset, 'standard'>,
  url: string,
  event: PresetEvent,
): WebhookRequest {
  const { title, description, icon, channelName } = event
  // Services refuse text of which nothing is seen, or show an empty message.
  const request = FORMATS[preset](new URL(url), {
    ...event,
    title: isInvisible(title) ? channelName : title,
    description: isInvisible(description ?? '') ? null : description,
    icon: isInvisible(icon ?? '') ? null : icon,
  })
  return { url: request.url ?? url, body: JSON.stringify(request.body) }
}

/** Returns an own body in place of that of a preset. */
export function replaceBody(presetBody: string, own: object): string {
  if (Array.isArray(own)) return JSON.stringify(own)
  const all = Object.entries(JSON.parse(presetBody) as object)
  const kept = all.filter(([name]) => KEPT.includes(name))
  return JSON.stringify({ ...own, ...Object.fromEntries(kept) })
}

/** Returns why a service cannot use a URL, as a sentence; undefined if it can. */
export function findPresetProblem(preset: Preset, url: URL, hasBody = false): string | undefined {
  if (hasBody && preset !== 'discord' && DISCORD_HOST.test(url.hostname)) {
    return 'An own body for Discord requires the preset discord, which lets nobody mention others'
  }
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

/** Cuts the description, so that the other parts fit. */
function toText(event: PresetEvent): string {
  const others = [toLink(event), toFooter(event)].filter(text => text !== undefined)
  const around = [toHeadline(event), '', ...others].join('\n\n').length
  const description = event.description && cut(event.description, MAX_TELEGRAM - around)
  return [toHeadline(event), description, ...others].filter(Boolean).join('\n\n')
}

/**
 * Returns the url of an event in ASCII, without the character that ends one in Slack; undefined if
 * the event has none, or if it is too long.
 */
function toLink({ url }: PresetEvent): string | undefined {
  if (url === undefined) return undefined
  const link = new URL(url).href.replaceAll('|', '%7C')
  return link.length <= MAX_URL ? link : undefined
}

function toSlackLink(event: PresetEvent): object[] {
  const link = toLink(event)
  if (link === undefined) return []
  const text = `<${escapeSlack(link)}|Open ${escapeSlack(new URL(link).host)}>`
  return text.length <= MAX_SECTION ? [{ type: 'section', text: { type: 'mrkdwn', text } }] : []
}

/** Discord refuses a message with the URL of a host without a dot. */
function toDiscordLink(event: PresetEvent): object {
  const link = toLink(event)
  return link !== undefined && new URL(link).hostname.includes('.') ? { url: link } : {}
}

/** Cuts a message to what ntfy shows, and to `jsonBytes` of JSON. */
function cutMessage(text: string, jsonBytes: number): string {
  for (let bytes = MAX_NTFY_MESSAGE; ; bytes = Math.floor(0.9 * bytes)) {
    const message = cutBytes(text, bytes)
    if (countJsonBytes(message) <= jsonBytes) return message
  }
}

function countJsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
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

/** Escapes text, and cuts it without leaving a backslash that escapes nothing. */
function cutMarkdown(text: string, units: number): string {
  return cut(escapeMarkdown(text), units).replace(/(?<!\\)((?:\\\\)*)\\…$/, '$1…')
}

/** Cuts text to a number of UTF-16 units, which services count, without splitting a character. */
function cut(text: string, units: number): string {
  return text.length <= units ? text : `${takeStart(text, units - 1)}…`
}

function cutBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text
  const start = new TextDecoder().decode(Buffer.from(text).subarray(0, bytes - 3))
  return `${takeStart(text, start.replace(/\ufffd+$/, '').length)}…`
}

import { isInvisible, takeStart } from '../../base/display-text.ts'
import { findIssues } from '../../http/rules.ts'
import { invalidField } from '../../http/validation.ts'
import { toEmoji } from '../channels/icon.ts'
import { LEVELS, toRank } from '../channels/level.ts'
import { fromPlainText, takeTags } from '../events/new-event.ts'
import { EventInput, type Event } from '../events/schema.ts'

/** The fields of a message by their names in JSON, each with its names in headers and queries. */
const NAMES = {
  message: ['message', 'm'],
  title: ['title', 'ti', 't'],
  priority: ['priority', 'prio', 'p'],
  tags: ['tags', 'tag', 'ta'],
  click: ['click'],
  sequence_id: ['sequence-id', 'sid'],
  attach: ['attach', 'a'],
  filename: ['filename', 'file', 'f'],
  icon: ['icon'],
  actions: ['actions', 'action'],
  delay: ['delay', 'at', 'in'],
  email: ['email', 'e-mail', 'mail', 'e'],
  call: ['call'],
  template: ['template', 'tpl'],
}
/** The fields of a message. Those without a value are empty. */
type Fields = Record<keyof typeof NAMES, string>

const PRIORITIES = ['1 min', '2 low', '3 default', '4 high', '5 max urgent']
/** Without these, a message would come at another time, to nobody, or as its own source text. */
const REFUSED = ['delay', 'email', 'call', 'template'] as const
const KEPT = ['attach', 'filename', 'icon', 'actions'] as const
const MAX_TITLE = 500
const MAX_DESCRIPTION = 5_000
/** More tags than an event can have. */
const MAX_TAGS = 40
/** The header Priority of RFC 9218, which browsers and proxies add. */
const HTTP_PRIORITY = /^(u=\d|i)\b/
/** A word of RFC 2047, with the white space before the next word. */
const ENCODED_WORD = /=\?([\w-]+)\?([bq])\?([^?\s]*)\?=(?:\s+(?==\?))?/gi

/** Reads the fields from what was sent as body or path, or else from the headers, or the query. */
export function readFields({ headers, url }: Request, sent: object): Fields {
  const query = new URLSearchParams(url.split('?').slice(1).join('?'))
  const bodies = new Map<string, unknown>(Object.entries(sent))
  const fields = Object.entries(NAMES).map(([field, names]) => {
    const all = names.flatMap(name => [`x-${name}`, name])
    const given = [
      ...all.map(name => decodeHeader(headers, name)),
      ...all.map(name => query.get(name) ?? ''),
    ]
    const text = given.map(clean).find(value => value !== '') ?? ''
    // ntfy reads `\n` there as a line break.
    const spread = field === 'message' ? text.replaceAll('\\n', '\n') : text
    const body = clean(toText(bodies.get(field)))
    // A body is a file then, and ntfy shows the message beside it.
    if (field === 'message' && spread !== '' && body !== '' && spread !== body)
      return [field, `${spread}\n${body}`]
    return [field, body || spread]
  })
  return Object.fromEntries(fields)
}

/** Returns a value of JSON as a header has it. */
function toText(value: unknown): string {
  if (Array.isArray(value) && value.every(one => typeof one === 'string')) return value.join()
  return typeof value === 'string' ? value : JSON.stringify(value ?? '').replace(/^""$/, '')
}

/** Returns what Postgres can store. */
function clean(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd').trim()
}

/** Decodes UTF-8, whose bytes arrive as one character each, and the words of RFC 2047. */
function decodeHeader(headers: Headers, name: string): string {
  const value = headers.get(name) ?? ''
  if (name === 'priority' && HTTP_PRIORITY.test(value)) return ''
  return (decode(value, 'utf-8') ?? value).replace(
    ENCODED_WORD,
    (word, charset: string, kind: string, text: string) => {
      const toByte = (_: string, hex: string) => String.fromCharCode(parseInt(hex, 16))
      const bytes = /b/i.test(kind)
        ? Buffer.from(text, 'base64').toString('latin1')
        : text.replaceAll('_', ' ').replace(/=([0-9a-f]{2})/gi, toByte)
      return decode(bytes, charset) ?? word
    },
  )
}

/** Decodes bytes that are one character each. Returns undefined if they are not in `charset`. */
function decode(bytes: string, charset: string): string | undefined {
  if (/^[\x20-\x7e]*$/.test(bytes)) return bytes
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return undefined
  }
}

/**
 * Converts a message to the body of an event. Text that is too long is cut, and fields without a
 * counterpart become metadata. Throws `InvalidRequest`.
 */
export function toEventInput(channelName: string, fields: Fields): EventInput {
  for (const name of REFUSED) {
    if (/^(|0|no|false)$/i.test(fields[name])) continue
    throw invalidField(name, 'invalid_value', 'Is not supported here. Send the message without it')
  }
  const { click, sequence_id: thread } = fields
  // Programs in Go send 0 for none.
  const priority = fields.priority.replace(/^0$/, '')
  const rank = PRIORITIES.findIndex(names => names.split(' ').includes(priority.toLowerCase()))
  if (priority !== '' && rank < 0) {
    const message = 'Must be 1 to 5, min, low, default, high, max or urgent'
    throw invalidField('priority', 'invalid_value', message)
  }
  const level = rank < 0 ? undefined : LEVELS[Math.max(rank - 1, 0)]
  const isLink = findIssues(EventInput.properties.url, click)?.length === 0
  const kept = [...KEPT, ...(isLink ? [] : (['click'] as const))]
  const all = fields.tags.split(',', MAX_TAGS).map(tag => tag.trim())
  const icons = all.map(tag => toEmoji(tag) ?? toEmoji(`:${tag}:`))
  const place = icons.findIndex(icon => icon !== undefined)
  return {
    channelName,
    ...toTexts(fields, icons[place]),
    tags: takeTags(all.filter((tag, nth) => tag !== '' && nth !== place)),
    metadata: Object.fromEntries(
      kept.filter(name => fields[name] !== '').map(name => [name, fields[name]]),
    ),
    source: 'ntfy',
    ...(level && { level }),
    ...(isLink && { url: click }),
    ...(thread !== '' && { thread }),
  }
}

function toTexts(
  { title, message, filename }: Fields,
  icon = '',
): Pick<EventInput, 'title' | 'icon' | 'description'> {
  const body = message || filename || 'triggered'
  const text = isInvisible(title) ? body : `${title.replaceAll(/\s+/g, ' ')}\n${body}`
  const parts = fromPlainText(`${icon} ${text}`)
  const lines = [parts.title.length > MAX_TITLE ? parts.title : '', parts.description ?? '']
  const description = cut(lines.join('\n').trim(), MAX_DESCRIPTION)
  return {
    ...parts,
    title: cut(parts.title, MAX_TITLE),
    ...(description !== '' && { description }),
  }
}

/** Returns a text that is cut after a number of UTF-16 units, which it then says. */
export function cut(text: string, units: number): string {
  return text.length > units ? `${takeStart(text, units - 1)}…` : text
}

/** Returns the stored event as ntfy's message. `stored` is the body of the response of /v1. */
export function toMessage(stored: string): string {
  const event: Event = JSON.parse(stored).data
  const { id, createdAt, channelName: topic, title, description, level, tags, url, thread } = event
  return JSON.stringify({
    id,
    time: Math.floor(Date.parse(createdAt) / 1000),
    event: 'message',
    topic,
    ...(description === null ? { message: title } : { title, message: description }),
    ...(level && { priority: toRank(level) + 2 }),
    ...(tags.length > 0 && { tags }),
    click: url,
    sequence_id: thread,
  })
}

import { createHash } from 'node:crypto'
import { toId } from '../ids.ts'

/** What a push says, before it is encrypted. */
export interface Message {
  /** Declarative Web Push: JSON that browsers show by themselves, or that our service worker reads. */
  payload: string
  /** Replaces what waits at the push service under the same one. */
  topic: string
}

/** What is told of an event; ids are uuids. */
export interface Told {
  projectId: string
  project: string
  channelId: string
  channel: string
}

export interface ToldEvent extends Told {
  eventId: string
  title: string
  description: string | null
  icon: string | null
}

/** What a push service and a phone take for sure, before encryption adds 103. */
export const MAX_BYTES = 2_600

const MAX_TITLE = 1_000
const MAX_NAME = 250
/** For what is in a hurry: the title alone. */
const MAX_SHORT = 200

/** Tells of one event; opened, it shows exactly that. */
export function toEventMessage(siteUrl: string, event: ToldEvent): Message {
  const title = event.icon === null ? event.title : `${event.icon} ${event.title}`
  const notification = {
    title: cut(title, MAX_TITLE),
    navigate: toEventUrl(siteUrl, event.eventId),
    tag: toTag('event', event.eventId),
  }
  const place = toPlace(event)
  if (!event.description) return toMessage({ ...notification, body: place })
  const left = MAX_BYTES - Buffer.byteLength(toPayload({ ...notification, body: `\n${place}` }))
  return toMessage({ ...notification, body: `${cut(event.description, left)}\n${place}` })
}

/** The same as briefly as possible, for a push service to which it was too much. */
export function toShortMessage({ payload, topic }: Message): Message {
  const { title, navigate, tag } = (JSON.parse(payload) as { notification: Notification })
    .notification
  return { payload: toPayload({ title: cut(title, MAX_SHORT), navigate, tag }), topic }
}

/** Counts what was too much to be told one by one. It replaces the count before it. */
export function toCountMessage(
  siteUrl: string,
  told: Told & { count: number; burstAtMs: number },
): Message {
  const channel = encodeURIComponent(toId('chn', told.channelId))
  return toMessage({
    title: `${told.count} more in ${cut(told.channel, MAX_NAME)}`,
    body: cut(told.project, MAX_NAME),
    navigate: `${siteUrl}/p/${toId('prj', told.projectId)}?channel=${channel}`,
    tag: toTag('burst', `${told.channelId} ${told.burstAtMs}`),
  })
}

/** Says that pushes arrive. */
export function toTestMessage(siteUrl: string): Message {
  return toMessage({
    title: '👋 Test from Tidings',
    body: 'Notifications arrive on this device.',
    navigate: `${siteUrl}/`,
    tag: 'test',
  })
}

interface Notification {
  title: string
  body?: string
  navigate: string
  tag: string
}

function toMessage(notification: Notification): Message {
  return { payload: toPayload(notification), topic: notification.tag }
}

function toPayload(notification: Notification): string {
  return JSON.stringify({ web_push: 8030, notification })
}

function toEventUrl(siteUrl: string, eventId: string): string {
  return `${siteUrl}/e/${toId('evt', eventId)}`
}

/** Where it happened, as the last line. */
function toPlace({ channel, project }: Told): string {
  return `${cut(channel, MAX_NAME)} · ${cut(project, MAX_NAME)}`
}

/** 32 characters that every push service takes as a topic: Apple's refuses `_`. */
function toTag(kind: string, text: string): string {
  return createHash('sha256').update(`${kind} ${text}`).digest('hex').slice(0, 32)
}

/** As many code points of `text` as fit into so many bytes of JSON, with an ellipsis in place of the rest. */
export function cut(text: string, maxBytes: number): string {
  if (measure(text) <= maxBytes) return text
  let [bytes, kept] = [measure('…'), '']
  for (const point of text) {
    bytes += measure(point)
    if (bytes > maxBytes) break
    kept += point
  }
  return `${kept}…`
}

/** The bytes of `text` inside of a string of JSON. */
function measure(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

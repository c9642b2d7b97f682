import { createHash } from 'node:crypto'
import { toId } from '../ids.ts'

/** A push before encryption. */
export interface PushMessage {
  /** Declarative Web Push: JSON that browsers show by themselves, or that our service worker reads. */
  payload: string
  /** A push replaces a waiting one of the same topic at the push service. */
  topic: string
}

/** Where an event happened; ids are uuids. */
export interface EventLocation {
  projectId: string
  project: string
  channelId: string
  channel: string
}

export interface PushEvent extends EventLocation {
  eventId: string
  title: string
  description: string | null
  icon: string | null
}

/** The largest payload that every push service and phone accepts, in bytes, before encryption adds 103. */
export const MAX_PAYLOAD_BYTES = 2_600

const MAX_TITLE = 1_000
const MAX_NAME = 250
/** Of the title in a short message. */
const MAX_SHORT = 200

/** A message about one event, which it opens. */
export function toEventMessage(siteUrl: string, event: PushEvent): PushMessage {
  const title = event.icon === null ? event.title : `${event.icon} ${event.title}`
  const notification = {
    title: truncateToBytes(title, MAX_TITLE),
    navigate: toEventUrl(siteUrl, event.eventId),
    tag: toTag('event', event.eventId),
  }
  const place = toLocationLine(event)
  if (!event.description) return toMessage({ ...notification, body: place })
  const left =
    MAX_PAYLOAD_BYTES - Buffer.byteLength(toPayload({ ...notification, body: `\n${place}` }))
  return toMessage({
    ...notification,
    body: `${truncateToBytes(event.description, left)}\n${place}`,
  })
}

/** The shortest form of a message, for a push service that refused it as too large. */
export function toShortMessage({ payload, topic }: PushMessage): PushMessage {
  const { title, navigate, tag } = (JSON.parse(payload) as { notification: Notification })
    .notification
  return { payload: toPayload({ title: truncateToBytes(title, MAX_SHORT), navigate, tag }), topic }
}

/** A message that counts the collapsed events of a burst. It replaces the count before it. */
export function toSummaryMessage(
  siteUrl: string,
  burst: EventLocation & { count: number; burstAtMs: number },
): PushMessage {
  const channel = encodeURIComponent(toId('chn', burst.channelId))
  return toMessage({
    title: `${burst.count} more in ${truncateToBytes(burst.channel, MAX_NAME)}`,
    body: truncateToBytes(burst.project, MAX_NAME),
    navigate: `${siteUrl}/p/${toId('prj', burst.projectId)}?channel=${channel}`,
    tag: toTag('burst', `${burst.channelId} ${burst.burstAtMs}`),
  })
}

export function toTestMessage(siteUrl: string): PushMessage {
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

function toMessage(notification: Notification): PushMessage {
  return { payload: toPayload(notification), topic: notification.tag }
}

function toPayload(notification: Notification): string {
  return JSON.stringify({ web_push: 8030, notification })
}

function toEventUrl(siteUrl: string, eventId: string): string {
  return `${siteUrl}/e/${toId('evt', eventId)}`
}

/** The last line: channel and project. */
function toLocationLine({ channel, project }: EventLocation): string {
  return `${truncateToBytes(channel, MAX_NAME)} · ${truncateToBytes(project, MAX_NAME)}`
}

/** A topic of 32 characters that every push service accepts: Apple's refuses `_`. */
function toTag(kind: string, text: string): string {
  return createHash('sha256').update(`${kind} ${text}`).digest('hex').slice(0, 32)
}

/** Cuts `text` by code points to `maxBytes` of JSON, with an ellipsis for the rest. */
export function truncateToBytes(text: string, maxBytes: number): string {
  if (measure(text) <= maxBytes) return text
  let [bytes, kept] = [measure('…'), '']
  for (const point of text) {
    bytes += measure(point)
    if (bytes > maxBytes) break
    kept += point
  }
  return `${kept}…`
}

/** The bytes of `text` inside a JSON string. */
function measure(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

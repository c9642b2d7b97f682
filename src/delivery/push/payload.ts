import { createHash } from 'node:crypto'
import { takeStart } from '../../base/display-text.ts'
import { toId } from '../../base/ids.ts'

/** A push before encryption. */
export interface PushMessage {
  /**
   * Declarative Web Push: JSON that some browsers show by themselves, and that our service worker
   * reads in the others.
   */
  payload: string
  /**
   * The Topic header of RFC 8030. At the push service, a push replaces an undelivered one with the
   * same topic.
   */
  topic: string
}

/** The channel and the project of an event. Ids are uuids. */
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

/**
 * The largest payload, in bytes, that every push service and phone accepts. Encryption adds 103
 * bytes.
 */
export const MAX_PAYLOAD_BYTES = 2_600

const MAX_TITLE = 1_000
const MAX_NAME = 250
/** The most bytes of the title in a short message. */
const MAX_SHORT = 200

/** Returns the message about one event. A click opens the event. */
export function toEventMessage(siteUrl: string, event: PushEvent): PushMessage {
  const title = event.icon === null ? event.title : `${event.icon} ${event.title}`
  const path = `/e/${toId('evt', event.eventId)}`
  const notification = {
    title: truncateToBytes(title, MAX_TITLE),
    navigate: siteUrl + path,
    tag: toTag('event', event.eventId),
    data: toData(event, path),
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

/** Returns the shortest form of a message, for a push service that refused it as too large. */
export function toShortMessage({ payload, topic }: PushMessage): PushMessage {
  const {
    body: _,
    title,
    ...rest
  } = (JSON.parse(payload) as { notification: Notification }).notification
  return { payload: toPayload({ title: truncateToBytes(title, MAX_SHORT), ...rest }), topic }
}

/**
 * Returns a message that counts the collapsed events of a burst. It replaces the previous count.
 */
export function toSummaryMessage(
  siteUrl: string,
  burst: EventLocation & { count: number; burstAtMs: number },
): PushMessage {
  const channel = encodeURIComponent(toId('chn', burst.channelId))
  const path = `/p/${toId('prj', burst.projectId)}?channel=${channel}`
  return toMessage({
    title: `${burst.count} more in ${truncateToBytes(burst.channel, MAX_NAME)}`,
    body: truncateToBytes(burst.project, MAX_NAME),
    navigate: siteUrl + path,
    tag: toTag('burst', `${burst.channelId} ${burst.burstAtMs}`),
    data: toData(burst, path),
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
  data?: NotificationData
}

/**
 * The dashboard reads it to close notifications of channels that were read, and of events that were
 * opened.
 */
interface NotificationData {
  channel: string
  path: string
}

function toData({ channelId }: EventLocation, path: string): NotificationData {
  return { channel: toId('chn', channelId), path }
}

function toMessage(notification: Notification): PushMessage {
  return { payload: toPayload(notification), topic: notification.tag }
}

/**
 * The number on the icon of the installed app, until a page shows the real one. WebKit reads it in
 * the notification, as text, and the draft of the standard beside it.
 */
const APP_BADGE = 1

function toPayload(notification: Notification): string {
  return JSON.stringify({
    web_push: 8030,
    notification: { ...notification, app_badge: String(APP_BADGE) },
    app_badge: APP_BADGE,
  })
}

/** Returns the last line of a message: channel and project. */
function toLocationLine({ channel, project }: EventLocation): string {
  return `${truncateToBytes(channel, MAX_NAME)} · ${truncateToBytes(project, MAX_NAME)}`
}

/** Returns a topic of 32 characters that every push service accepts. Apple's refuses `_`. */
function toTag(kind: string, text: string): string {
  return createHash('sha256').update(`${kind} ${text}`).digest('hex').slice(0, 32)
}

/** Cuts `text` between characters to `maxBytes` of JSON, including the ellipsis. */
export function truncateToBytes(text: string, maxBytes: number): string {
  if (measure(text) <= maxBytes) return text
  let [bytes, kept] = [measure('…'), '']
  for (const point of text) {
    bytes += measure(point)
    if (bytes > maxBytes) break
    kept += point
  }
  return `${takeStart(text, kept.length)}…`
}

/** Returns the size of `text` inside a JSON string, in bytes. */
function measure(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

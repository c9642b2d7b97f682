import { createHash } from 'node:crypto'
import { takeStart } from '../../base/display-text.ts'
import { toId } from '../../base/ids.ts'
import type { Level } from '../../log/channels/level.ts'

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
  /** The Urgency header of RFC 8030. With `normal`, a phone with a low battery may wait. */
  urgency: 'normal' | 'high'
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
  /** Null for `normal`. */
  level: Level | null
  url: string | null
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

/**
 * Returns the message about one event. A click opens its url, and a button the event. Without a
 * url, or if the url leaves no room for the title, a click opens the event.
 */
export function toEventMessage(siteUrl: string, event: PushEvent): PushMessage {
  const title = event.icon === null ? event.title : `${event.icon} ${event.title}`
  const path = `/e/${toId('evt', event.eventId)}`
  const isUrgent = event.level === 'high' || event.level === 'critical'
  const place = toLocationLine(event)
  const notification = {
    title: truncateToBytes(title, MAX_TITLE),
    ...toLink(siteUrl + path, event.url),
    tag: toTag('event', event.eventId),
    data: toData(event, path),
    ...(isUrgent && { requireInteraction: true }),
  }
  const left =
    MAX_PAYLOAD_BYTES - Buffer.byteLength(toPayload({ ...notification, body: `\n${place}` }))
  if (event.url !== null && left < measure('…'))
    return toEventMessage(siteUrl, { ...event, url: null })
  const urgency = isUrgent ? 'high' : 'normal'
  if (!event.description) return toMessage({ ...notification, body: place }, urgency)
  const body = `${truncateToBytes(event.description, left)}\n${place}`
  return toMessage({ ...notification, body }, urgency)
}

function toLink(eventUrl: string, url: string | null): Pick<Notification, 'navigate' | 'actions'> {
  if (url === null) return { navigate: eventUrl }
  return { navigate: url, actions: [{ action: 'event', title: 'Show event', navigate: eventUrl }] }
}

/** Returns the shortest form of a message, for a push service that refused it as too large. */
export function toShortMessage({ payload, ...rest }: PushMessage): PushMessage {
  const {
    body: _,
    title,
    navigate,
    actions,
    ...others
  } = (JSON.parse(payload) as { notification: Notification }).notification
  const short = {
    title: truncateToBytes(title, MAX_SHORT),
    navigate: actions?.[0]?.navigate ?? navigate,
    ...others,
  }
  return { payload: toPayload(short), ...rest }
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
  const summary = {
    title: `${burst.count} more in ${truncateToBytes(burst.channel, MAX_NAME)}`,
    body: truncateToBytes(burst.project, MAX_NAME),
    navigate: siteUrl + path,
    tag: toTag('burst', `${burst.channelId} ${burst.burstAtMs}`),
    data: toData(burst, path),
  }
  return toMessage(summary, 'normal')
}

export function toTestMessage(siteUrl: string): PushMessage {
  const test = {
    title: '👋 Test from Tidings',
    body: 'Notifications arrive on this device.',
    navigate: `${siteUrl}/`,
    tag: 'test',
  }
  return toMessage(test, 'high')
}

interface Notification {
  title: string
  body?: string
  navigate: string
  /** The button that opens the event, if `navigate` is the url of the event. */
  actions?: { action: string; title: string; navigate: string }[]
  tag: string
  data?: NotificationData
  requireInteraction?: boolean
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

function toMessage(notification: Notification, urgency: PushMessage['urgency']): PushMessage {
  return { payload: toPayload(notification), topic: notification.tag, urgency }
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

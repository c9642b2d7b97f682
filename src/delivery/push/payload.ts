import { createHash } from 'node:crypto'
import { takeStart } from '../../base/display-text.ts'
import { toId } from '../../base/ids.ts'
import { toLength } from '../../base/period.ts'
import type { Level } from '../../log/channels/level.ts'
import type { State } from '../../log/events/state.ts'
import type { WITHHELD_REASONS } from './dispatch.ts'

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
  /** For how long the push service keeps it; a day or less if undefined. */
  ttlS?: number
}

/** The channel and the project of an event. Ids are uuids. */
export interface EventLocation {
  projectId: string
  project: string
  channelId: string
  channel: string
}

/** A push with the tag of its notification, which replaces the one before. */
export type TaggedMessage = PushMessage & { tag: string }

/** The other notifications of a device, as its push says it. */
export interface Unread {
  /** The number on the icon of the installed app. */
  badge: number
  /** The tags of notifications that were read elsewhere. */
  close: readonly string[]
}

export interface PushEvent extends EventLocation {
  eventId: string
  seq: number
  title: string
  description: string | null
  icon: string | null
  /** Null for `normal`. */
  level: Level | null
  url: string | null
  /** True if the device has got the same critical event before. */
  isRepeated: boolean | null
  thread: PushThread | null
  /** The answers to its question; null without one, and once it has ended. */
  actions?: readonly Answer[] | null
}

interface Answer {
  id: string
  label: string
}

/** The content of a push that is about the thread of its event. */
export interface PushThread {
  /**
   * The seqs of the event, and of the one that opened its generation of the thread. `seq` is the
   * last one of the project if it speaks for a storm.
   */
  seq: number
  threadSeq: number
  state: State | null
  isOpening: boolean
  /** True if it replaces the last notification without a sound. */
  isSilent: boolean
  /** The time since the thread was opened; null if it has no events any more. */
  elapsedMs: number | null
  /** How long it waits: to count a storm, or for what it replaces. Null if it does not. */
  waitMs: number | null
  /** The storm that it speaks for, with its threads, of which `openCount` have not ended. */
  storm: { seq: number; openCount: number; count: number } | null
  withheld: keyof typeof WITHHELD_REASONS | null
}

/**
 * The largest payload, in bytes, that every push service and phone accepts. Encryption adds 103
 * bytes.
 */
export const MAX_PAYLOAD_BYTES = 2_600

const MAX_TITLE = 1_000
const MAX_NAME = 250
/** The channels that the message after quiet hours names. */
const MAX_CHANNELS = 5
/** The most bytes of the title in a short message. */
const MAX_SHORT = 200
/** The most threads of a storm that are counted. */
const MAX_COUNT = 1_000

/**
 * Returns the message about one event. A click opens its url, and a button the event. Without a
 * url, or if the url leaves no room for the title, a click opens the event. Its url has room before
 * tags that it closes.
 */
export function toEventMessage(siteUrl: string, event: PushEvent, unread?: Unread): TaggedMessage {
  const { thread } = event
  if (thread?.storm)
    return toStormMessage(siteUrl, event, { ...thread, storm: thread.storm }, unread)
  const title = event.icon === null ? event.title : `${event.icon} ${event.title}`
  const path = `/e/${toId('evt', event.eventId)}`
  const place = [thread && toStateText(thread), toLocationLine(event)].filter(Boolean).join(' · ')
  const data = toEventData(event, path)
  const own: Notification = {
    title: truncateToBytes(title, MAX_TITLE),
    ...toLinks(siteUrl + path, event),
    ...(thread
      ? toReplacement(event, thread, { tag: toThreadTag(event, thread.threadSeq), data })
      : { tag: toTag('event', event.eventId), data }),
    ...((isUrgent(event) || event.actions) && { requireInteraction: true }),
    ...(event.isRepeated && { renotify: true }),
  }
  const notification = addUnread(own, unread)
  const left =
    MAX_PAYLOAD_BYTES - Buffer.byteLength(toPayload({ ...notification, body: `\n${place}` }))
  if (left < measure('…') && unread && unread.close.length > 0)
    return toEventMessage(siteUrl, event, { ...unread, close: [] })
  if (left < measure('…') && event.url !== null)
    return toEventMessage(siteUrl, { ...event, url: null }, unread)
  if (left < measure('…') && event.actions)
    return toEventMessage(siteUrl, { ...event, actions: null }, unread)
  const urgency = isUrgent(event) ? 'high' : 'normal'
  if (!event.description) return toMessage({ ...notification, body: place }, urgency)
  const body = `${truncateToBytes(event.description, left)}\n${place}`
  return toMessage({ ...notification, body }, urgency)
}

/**
 * Returns the message about the threads of a storm. It replaces the one before.
 */
function toStormMessage(
  siteUrl: string,
  event: PushEvent,
  thread: PushThread & { storm: NonNullable<PushThread['storm']> },
  unread: Unread | undefined,
): TaggedMessage {
  const { seq, openCount, count } = thread.storm
  const path = toChannelPath(event)
  const channel = truncateToBytes(event.channel, MAX_NAME)
  const storm = {
    title:
      openCount > 0
        ? `${toCount(openCount)} firing in ${channel}`
        : `All ${toCount(count)} resolved in ${channel}`,
    body: truncateToBytes(event.project, MAX_NAME),
    navigate: siteUrl + path,
    ...toReplacement(event, thread, {
      tag: toTag('storm', `${event.projectId} ${seq}`),
      data: toData(event, path),
    }),
    ...(isUrgent(event) && { requireInteraction: true }),
  }
  return toMessage(addUnread(storm, unread), isUrgent(event) ? 'high' : 'normal')
}

/** Returns how the notification of a thread or a storm replaces the one before. */
function toReplacement(
  event: PushEvent,
  { seq, threadSeq, isSilent, isOpening, storm }: PushThread,
  target: { tag: string; data: NotificationData },
): Pick<Notification, 'tag' | 'data' | 'silent' | 'renotify'> {
  return {
    tag: target.tag,
    data: {
      ...target.data,
      seq,
      ...(storm?.openCount === 0 && { close: [toThreadTag(event, threadSeq)] }),
    },
    ...(isSilent ? { silent: true } : (!isOpening || storm) && { renotify: true }),
  }
}

function toThreadTag({ projectId }: EventLocation, threadSeq: number): string {
  return toTag('thread', `${projectId} ${threadSeq}`)
}

/** Returns the state of a thread, such as `Resolved after 12 minutes`. */
function toStateText({ state, isOpening, elapsedMs }: PushThread): string {
  if (state === null) return ''
  const text = state[0]?.toUpperCase() + state.slice(1)
  const seconds = Math.floor((elapsedMs ?? 0) / 1_000)
  if (isOpening || seconds < 1 || state === 'running' || state === 'firing') return text
  return `${text} after ${toLength(seconds)}`
}

function toCount(count: number): string {
  return count > MAX_COUNT ? '1,000+' : count.toLocaleString('en')
}

function isUrgent({ level }: PushEvent): boolean {
  return level === 'high' || level === 'critical'
}

/** Returns true if somebody should acknowledge it: it is critical, or high and fires. */
function isAlarm({ level, thread }: PushEvent): boolean {
  const state = thread?.state
  if (level === 'critical') return state !== 'resolved' && state !== 'succeeded'
  return level === 'high' && state === 'firing'
}

/** Returns the answers that have room: browsers show two buttons. */
function takeAnswers({ actions }: PushEvent): readonly Answer[] {
  return actions?.slice(0, 2) ?? []
}

/** Browsers without our service worker only navigate, so each button leads to the event. */
function toLinks(eventUrl: string, event: PushEvent): Pick<Notification, 'navigate' | 'actions'> {
  const actions = [
    ...takeAnswers(event).map(({ id, label }) => ({ action: `answer ${id}`, title: label })),
    ...(isAlarm(event) ? [{ action: 'acknowledge', title: 'Acknowledge' }] : []),
    ...(event.url === null ? [] : [{ action: 'event', title: 'Show event' }]),
  ].map(one => ({ ...one, navigate: eventUrl }))
  return { navigate: event.url ?? eventUrl, ...(actions.length > 0 && { actions }) }
}

/** Adds the badge, and the tags that it closes. */
function addUnread(notification: Notification, unread: Unread | undefined): Notification {
  if (!unread) return notification
  const { data } = notification
  const close = [...(data?.close ?? []), ...unread.close]
  return {
    ...notification,
    ...(data && { data: { ...data, ...(close.length > 0 && { close }) } }),
    app_badge: String(unread.badge),
  }
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
  unread?: Unread,
): TaggedMessage {
  const path = toChannelPath(burst)
  const summary = {
    title: `${burst.count} more in ${truncateToBytes(burst.channel, MAX_NAME)}`,
    body: truncateToBytes(burst.project, MAX_NAME),
    navigate: siteUrl + path,
    tag: toTag('burst', `${burst.channelId} ${burst.burstAtMs}`),
    data: toData(burst, path),
  }
  return toMessage(addUnread(summary, unread), 'normal')
}

/** Returns the path of the feed with one channel. */
function toChannelPath({ projectId, channelId }: EventLocation): string {
  return `/p/${toId('prj', projectId)}?channel=${encodeURIComponent(toId('chn', channelId))}`
}

export interface ChannelCount {
  channel: string
  count: number
  /** True if there were more. */
  isMore: boolean
}

/** Returns the message after quiet hours, which counts what they withheld. */
export function toQuietMessage(
  siteUrl: string,
  { id, counts }: { id: string; counts: readonly ChannelCount[] },
): PushMessage {
  const others = counts.slice(MAX_CHANNELS)
  const sum = {
    channel: 'other channels',
    count: others.reduce((total, { count }) => total + count, 0),
    isMore: others.some(({ isMore }) => isMore),
  }
  const parts = [...counts.slice(0, MAX_CHANNELS), ...(others.length > 0 ? [sum] : [])].map(
    ({ channel, count, isMore }) =>
      `${count}${isMore ? '+' : ''} in ${truncateToBytes(channel, MAX_NAME)}`,
  )
  const summary = {
    title: 'Quiet hours are over',
    body: `${parts.join(', ')} while you were away`,
    navigate: `${siteUrl}/`,
    tag: toTag('quiet', id),
  }
  return toMessage(summary, 'normal')
}

/** The silence of a project, a channel or a thread, which ends soon. */
export interface EndingSilence {
  id: string
  projectId: string
  project: string
  channel: string | null
  thread: string | null
  leftS: number
  firing: number
}

/** Returns the message to the author of a silence. */
export function toSilenceMessage(siteUrl: string, silence: EndingSilence): PushMessage {
  const { id, projectId, project, channel, thread, leftS, firing } = silence
  const name = truncateToBytes(thread ?? channel ?? project, MAX_NAME)
  const minutes = Math.max(1, Math.round(leftS / 60))
  const warning = {
    title: `Silence of ${name} ends in ${minutes} minute${minutes === 1 ? '' : 's'}: ${firing} still firing`,
    body: [thread && channel, project]
      .flatMap(one => (one ? [truncateToBytes(one, MAX_NAME)] : []))
      .join(' · '),
    navigate: `${siteUrl}/p/${toId('prj', projectId)}/open`,
    tag: toTag('silence', id),
  }
  return { ...toMessage(warning, 'high'), ttlS: Math.ceil(leftS) }
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
  /** A button that acknowledges, and one that opens the event if `navigate` is its url. */
  actions?: { action: string; title: string; navigate: string }[]
  tag: string
  data?: NotificationData
  requireInteraction?: boolean
  silent?: boolean
  renotify?: boolean
  /** WebKit reads it here, as text, and the draft of the standard beside the notification. */
  app_badge?: string
}

/**
 * The dashboard reads it to close notifications of channels that were read, and of threads and
 * events that were opened or acknowledged: `about` is `prj_… 42`, with the threadSeq or the seq.
 * The buttons post to the paths `acknowledge` and `answer`. With `seq`, a notification never
 * replaces a newer one of its tag. Those with a tag in `close` are closed.
 */
interface NotificationData {
  channel: string
  path: string
  about?: string
  acknowledge?: string
  answer?: string
  answers?: readonly Answer[]
  seq?: number
  close?: string[]
}

function toData({ channelId }: EventLocation, path: string): NotificationData {
  return { channel: toId('chn', channelId), path }
}

function toEventData(event: PushEvent, path: string): NotificationData {
  const { projectId, eventId, thread, seq } = event
  const project = toId('prj', projectId)
  const api = `/api/projects/${project}/events/${toId('evt', eventId)}`
  const answers = takeAnswers(event)
  return {
    ...toData(event, path),
    about: `${project} ${thread?.threadSeq ?? seq}`,
    ...(isAlarm(event) && { acknowledge: `${api}/acknowledgement` }),
    ...(answers.length > 0 && { answer: `${api}/answer`, answers }),
  }
}

function toMessage(notification: Notification, urgency: PushMessage['urgency']): TaggedMessage {
  const { tag, silent } = notification
  // Else a silent push could replace one with a sound that the push service still has.
  const topic = silent ? toTag('silent', tag) : tag
  return { payload: toPayload(notification), tag, topic, urgency }
}

function toPayload(notification: Notification): string {
  const { app_badge } = notification
  return JSON.stringify({
    web_push: 8030,
    notification,
    ...(app_badge !== undefined && { app_badge: Number(app_badge) }),
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

import { toId } from '../../base/ids.ts'
import type { Level } from '../channels/level.ts'
import { parseExact } from '../../http/exact-json.ts'
import type { NewEvent } from './new-event.ts'
import type { State } from './state.ts'

/** The length of a uuid, with which each text begins. */
const UUID_LENGTH = 36
/** Follows the uuid in each text. */
const BEFORE_SEQ = '","seq":'

/**
 * Returns an event as JSON, with the same fields in the same order as the response to its creation.
 * `text` comes from the SQL function `text_of_event`.
 */
export function toEventJson(text: string): string {
  return `{"id":"${toId('evt', text.slice(0, UUID_LENGTH))}${text.slice(UUID_LENGTH)}`
}

/** Returns the seq of an event from its `text_of_event`. */
export function toEventSeq(text: string): bigint {
  const start = UUID_LENGTH + BEFORE_SEQ.length
  return BigInt(text.slice(start, text.indexOf(',', start)))
}

/** The texts of several events, and their bytes in UTF-8. */
export interface EventTexts {
  texts: string[]
  bytes: number
}

/** Splits the texts of several events. JSON never contains the character between them. */
export function splitEventTexts(texts: string | null): EventTexts {
  return texts === null
    ? { texts: [], bytes: 0 }
    : { texts: texts.split('\u0001'), bytes: Buffer.byteLength(texts) }
}

/** The fields of an event that append_batch assigns. */
export interface AssignedFields {
  seq: string
  channelId: string
  channelName: string
  userId: string | null
  /** The level of its thread or channel, for an event without one. */
  level: Level | null
  /** The state of its thread. */
  state: State | null
  /** Null without a thread. */
  threadSeq: number | null
  createdAtMs: number
}

/**
 * Returns the start of the response to an event, up to its seq. With an Idempotency-Key,
 * append_batch stores this, the text of `event_json`, and `toResponseTail`.
 */
export function toResponseHead(event: NewEvent): string {
  return `{"success":true,"data":{"id":"${event.id.id}","seq":`
}

/** Returns the end of the response to an event, after its JSON. */
export function toResponseTail(requestId: string): string {
  return `,"requestId":"${requestId}"}`
}

/** Returns the response to an event. The SQL function `event_json` writes the same bytes. */
export function toEventResponse(
  event: NewEvent,
  assigned: AssignedFields,
  requestId: string,
): string {
  const createdAt = new Date(assigned.createdAtMs).toISOString()
  const timestamp =
    event.occurredAtMs === null ? createdAt : new Date(event.occurredAtMs).toISOString()
  return (
    `${toResponseHead(event)}${assigned.seq},"channelId":"${assigned.channelId}"` +
    `,"channelName":${JSON.stringify(assigned.channelName)},"userId":${JSON.stringify(assigned.userId)}` +
    `,"timestamp":"${timestamp}","createdAt":"${createdAt}"` +
    `,"title":${JSON.stringify(event.title)},"description":${JSON.stringify(event.description)}` +
    `,"icon":${JSON.stringify(event.icon)},"tags":${JSON.stringify(event.tags)}` +
    `,"metadata":${event.metadataJson},"source":${JSON.stringify(event.source)}` +
    `,"notify":${event.notify}${toAlertFields(event, assigned)}` +
    `}${toResponseTail(requestId)}`
  )
}

/** Returns the members for a level that is not normal, for a url and for a thread. */
function toAlertFields(event: NewEvent, { state, threadSeq, ...assigned }: AssignedFields): string {
  const level = event.level ?? assigned.level
  const { url, thread } = event
  return (
    (level === null || level === 'normal' ? '' : `,"level":"${level}"`) +
    (url === null ? '' : `,"url":${JSON.stringify(url)}`) +
    (thread === null
      ? ''
      : `,"thread":${JSON.stringify(thread)}${state === null ? '' : `,"state":"${state}"`}` +
        `,"threadSeq":${threadSeq}`)
  )
}

/**
 * Returns the response to an event with the reference that the request sent, in place of the
 * user_id that it resolved to. All else keeps its bytes. An erased user stays null.
 */
export function toUserAsSent(body: string, { userRef }: NewEvent): string {
  if (userRef === null) return body
  const response = parseExact(body).value as { data: { userId: string | null } }
  if (response.data.userId !== null) response.data.userId = userRef
  return JSON.stringify(response)
}

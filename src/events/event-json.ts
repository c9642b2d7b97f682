import { toId } from '../ids.ts'
import type { NewEvent } from './new-event.ts'

/** A row of `eventColumns`: an event with its channel and user. `tags` and `metadata` are JSON. */
export interface EventRow {
  id: string
  seq: string
  channel_public_id: string
  channel_name: string
  user_id: string | null
  occurred_at: Date
  created_at: Date
  title: string
  description: string | null
  icon: string | null
  tags: string
  metadata: string
  source: string
  notify: boolean
}

/**
 * Returns an event as JSON, with the same fields in the same order as the response to its creation.
 */
export function toEventJson(row: EventRow): string {
  return (
    `{"id":"${toId('evt', row.id)}","seq":${row.seq},"channelId":"${row.channel_public_id}"` +
    `,"channelName":${JSON.stringify(row.channel_name)},"userId":${JSON.stringify(row.user_id)}` +
    `,"timestamp":"${row.occurred_at.toISOString()}","createdAt":"${row.created_at.toISOString()}"` +
    `,"title":${JSON.stringify(row.title)},"description":${JSON.stringify(row.description)}` +
    `,"icon":${JSON.stringify(row.icon)},"tags":${row.tags},"metadata":${row.metadata}` +
    `,"source":${JSON.stringify(row.source)},"notify":${row.notify}}`
  )
}

/** The fields of an event that append_events assigns. */
export interface AssignedFields {
  seq: string
  channelId: string
  channelName: string
  userId: string | null
  createdAtMs: number
}

/**
 * Returns the start of the response to an event, up to its seq. append_events writes the part
 * between this and `toResponseTail`.
 */
export function toResponseHead(event: NewEvent): string {
  return `{"success":true,"data":{"id":"${event.id.id}","seq":`
}

/** Returns the end of the response to an event, from the quote that closes `createdAt`. */
export function toResponseTail(event: NewEvent, requestId: string): string {
  return `",${toContentJson(event)}},"requestId":"${requestId}"}`
}

/**
 * Returns the response to an event without an Idempotency-Key. For an event with a key,
 * append_events writes the same text.
 */
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
    `,"timestamp":"${timestamp}","createdAt":"${createdAt}${toResponseTail(event, requestId)}`
  )
}

function toContentJson(event: NewEvent): string {
  return (
    `"title":${JSON.stringify(event.title)},"description":${JSON.stringify(event.description)}` +
    `,"icon":${JSON.stringify(event.icon)},"tags":${JSON.stringify(event.tags)}` +
    `,"metadata":${event.metadataJson},"source":${JSON.stringify(event.source)},"notify":${event.notify}`
  )
}

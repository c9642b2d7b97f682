import { toDisplayName, toSlug } from '../channels/name.ts'
import { newId, type Id } from '../ids.ts'
import { toEmoji } from '../channels/icon.ts'
import type { EventInput } from './schema.ts'
import { parseTimestamp } from './moment.ts'

/** A validated event on its way into the log. */
export interface Draft {
  id: Id
  channelName: string
  channelSlug: string
  title: string
  description: string | null
  icon: string | null
  tags: string[]
  metadataJson: string
  userRef: string | null
  source: string
  notify: boolean
  /** Milliseconds since 1970; null for the moment of creation. */
  occurredAtMs: number | null
}

/** Fills in what was left out and folds what has several spellings. */
export function toDraft(input: EventInput): Draft {
  return {
    id: newId('evt'),
    channelName: toDisplayName(input.channelName),
    channelSlug: toSlug(input.channelName),
    title: input.title.trim(),
    description: input.description ?? null,
    icon: (input.icon && toEmoji(input.icon)) ?? null,
    tags: input.tags ? [...new Set(input.tags)] : [],
    metadataJson: input.metadata ? JSON.stringify(input.metadata) : '{}',
    userRef: input.userId ?? null,
    source: input.source ?? 'api',
    notify: input.notify ?? true,
    occurredAtMs: input.timestamp === undefined ? null : (parseTimestamp(input.timestamp) ?? null),
  }
}

/** What the log gives an event. */
export interface Place {
  seq: string
  channelId: string
  channelName: string
  userId: string | null
  createdAtMs: number
}

/** The event's JSON up to its seq. Together with `toTail` and what stands between it is what `toEventJson` writes. */
export function toHead(draft: Draft): string {
  return `{"success":true,"data":{"id":"${draft.id.id}","seq":`
}

/** The rest of an event's answer, from the end of its createdAt on: append_events writes what the log gives. */
export function toTail(draft: Draft, requestId: string): string {
  return `",${toContentJson(draft)}},"requestId":"${requestId}"}`
}

/** The answer to an event, as append_events builds it for keyed ones. */
export function toEventAnswer(draft: Draft, place: Place, requestId: string): string {
  const createdAt = new Date(place.createdAtMs).toISOString()
  const timestamp =
    draft.occurredAtMs === null ? createdAt : new Date(draft.occurredAtMs).toISOString()
  return (
    `${toHead(draft)}${place.seq},"channelId":"${place.channelId}"` +
    `,"channelName":${JSON.stringify(place.channelName)},"userId":${JSON.stringify(place.userId)}` +
    `,"timestamp":"${timestamp}","createdAt":"${createdAt}${toTail(draft, requestId)}`
  )
}

function toContentJson(draft: Draft): string {
  return (
    `"title":${JSON.stringify(draft.title)},"description":${JSON.stringify(draft.description)}` +
    `,"icon":${JSON.stringify(draft.icon)},"tags":${JSON.stringify(draft.tags)}` +
    `,"metadata":${draft.metadataJson},"source":${JSON.stringify(draft.source)},"notify":${draft.notify}`
  )
}

import { createHash } from 'node:crypto'
import { toId } from '../../base/ids.ts'
import { parseExact } from '../../http/exact-json.ts'
import type { Event } from '../../log/events/schema.ts'
import type { Acknowledged } from './acknowledged.ts'
import {
  formatForPreset,
  replaceBody,
  type Preset,
  type PresetEvent,
  type WebhookRequest,
} from './presets.ts'
import { fillTemplate } from '../../log/events/template.ts'

const TIMESTAMP = '"timestamp":"'
const USER = '"userId":'

/** The project and the organization that a message names. Ids are uuids. */
export interface ProjectContext {
  project: { id: string; name: string }
  organization: { id: string; name: string }
}

export interface Endpoint {
  url: string
  preset: Preset
  /** The template of an own body; null for the body of the preset. */
  body: string | null
}

/**
 * Returns the id of the message about an event, which is the same in every attempt. Both ids are
 * uuids.
 */
export function toMessageId(eventId: string, webhookId: string): string {
  return `msg_${toSuffix(toId('evt', eventId))}_${toSuffix(toId('whk', webhookId))}`
}

/** Returns the id of a test message, from the uuid of its attempt. */
export function toTestMessageId(attemptId: string): string {
  return `msg_test_${toSuffix(toId('att', attemptId))}`
}

/**
 * Returns the request for an event. The standard body contains `eventJson` unchanged. The one for
 * its acknowledgement adds this, and says so in the title of presets and own bodies. Throws
 * `payload_too_large` for an own body.
 */
export function toEventRequest(
  endpoint: Endpoint,
  eventJson: string,
  context: ProjectContext,
  acknowledged?: Acknowledged,
): WebhookRequest {
  const data = `${eventJson.slice(0, -1)},${toContextJson(context).slice(1)}`
  const body = `{"type":"event.created","timestamp":"${readTimestamp(eventJson)}","data":${data}}`
  // Safe, because `toEventJson` wrote it.
  const toEvent = () => ({ ...(JSON.parse(eventJson) as Event), projectName: context.project.name })
  if (!acknowledged) return toRequest(endpoint, { data, body, toEvent })
  const { by, at } = acknowledged
  const told = `${data.slice(0, -1)},"acknowledged":${JSON.stringify(acknowledged)}}`
  const title = `Acknowledged by ${by}: ${toEvent().title}`
  return toRequest(endpoint, {
    data: JSON.stringify({ ...(parseExact(told).value as object), title }),
    body: `{"type":"event.acknowledged","timestamp":"${at}","data":${told}}`,
    toEvent: () => ({ ...toEvent(), title }),
  })
}

/** Returns a request with a standard `body`, or with one made of an event or of JSON `data`. */
function toRequest(
  { url, preset, body: template }: Endpoint,
  { data, body, toEvent }: { data: string; body: string; toEvent(): PresetEvent },
): WebhookRequest {
  const request = preset === 'standard' ? { url, body } : formatForPreset(preset, url, toEvent())
  if (template === null) return request
  return { url: request.url, body: replaceBody(request.body, fillTemplate(template, data)) }
}

/**
 * Returns whether an event names a user. Texts before the field contain no bare quotes, so the
 * first match is the field.
 */
export function hasUser(eventJson: string): boolean {
  return eventJson.startsWith(`${USER}"`, eventJson.indexOf(USER))
}

/**
 * Returns the timestamp of an event from its JSON. Texts before it contain no bare quotes, so the
 * first match is the field.
 */
function readTimestamp(eventJson: string): string {
  const start = eventJson.indexOf(TIMESTAMP) + TIMESTAMP.length
  return eventJson.slice(start, eventJson.indexOf('"', start))
}

/** Returns the request for a test. Presets and own bodies show a made-up event. */
export function toTestRequest(
  endpoint: Endpoint,
  context: ProjectContext,
  atMs: number,
): WebhookRequest {
  const timestamp = new Date(atMs).toISOString()
  const message = 'This is a test: your webhook works.'
  const event = {
    title: 'Test from Tidings',
    description: message,
    icon: '👋',
    channelName: 'test',
    timestamp,
    tags: [],
  }
  const data = `{"message":${JSON.stringify(message)},${toContextJson(context).slice(1)}`
  return toRequest(endpoint, {
    data: JSON.stringify({ ...event, ...(JSON.parse(data) as object) }),
    body: `{"type":"webhook.test","timestamp":"${timestamp}","data":${data}}`,
    toEvent: () => ({ ...event, projectName: context.project.name }),
  })
}

export function hashBody(body: string): Buffer {
  return createHash('sha256').update(body).digest()
}

function toContextJson({ project, organization }: ProjectContext): string {
  return JSON.stringify({
    project: { id: toId('prj', project.id), name: project.name },
    organization: { id: toId('org', organization.id), name: organization.name },
  })
}

function toSuffix(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}

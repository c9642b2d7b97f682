import { createHash } from 'node:crypto'
import { toId } from '../../base/ids.ts'
import type { Event } from '../../log/events/schema.ts'
import { formatForPreset, type Preset, type WebhookRequest } from './presets.ts'

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

/** Returns the request for an event. The standard body contains `eventJson` unchanged. */
export function toEventRequest(
  { url, preset }: Endpoint,
  eventJson: string,
  context: ProjectContext,
): WebhookRequest {
  if (preset !== 'standard') {
    // Safe, because `toEventJson` wrote it.
    const event = JSON.parse(eventJson) as Event
    return formatForPreset(preset, url, { ...event, projectName: context.project.name })
  }
  const data = `${eventJson.slice(0, -1)},${toContextJson(context).slice(1)}`
  return {
    url,
    body: `{"type":"event.created","timestamp":"${readTimestamp(eventJson)}","data":${data}}`,
  }
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

/** Returns the request for a test. A preset formats a made-up event. */
export function toTestRequest(
  { url, preset }: Endpoint,
  context: ProjectContext,
  atMs: number,
): WebhookRequest {
  const timestamp = new Date(atMs).toISOString()
  const message = 'This is a test: your webhook works.'
  if (preset !== 'standard') {
    return formatForPreset(preset, url, {
      title: 'Test from Tidings',
      description: message,
      icon: '👋',
      channelName: 'test',
      projectName: context.project.name,
      timestamp,
      tags: [],
    })
  }
  const data = `{"message":${JSON.stringify(message)},${toContextJson(context).slice(1)}`
  return { url, body: `{"type":"webhook.test","timestamp":"${timestamp}","data":${data}}` }
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

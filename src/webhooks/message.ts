import { createHash } from 'node:crypto'
import type { Event } from '../events/schema.ts'
import { toId } from '../ids.ts'
import { formatForPreset, type Preset, type WebhookRequest } from './presets.ts'

/** The project and the organization that a message names; ids are uuids. */
export interface ProjectContext {
  project: { id: string; name: string }
  organization: { id: string; name: string }
}

export interface Endpoint {
  url: string
  preset: Preset
}

/** The id of the message about an event, the same in every attempt; both ids are uuids. */
export function toMessageId(eventId: string, webhookId: string): string {
  return `msg_${toSuffix(toId('evt', eventId))}_${toSuffix(toId('whk', webhookId))}`
}

/** The id of a test message, by the uuid of its attempt. */
export function toTestMessageId(attemptId: string): string {
  return `msg_test_${toSuffix(toId('att', attemptId))}`
}

/** The request about an event, whose JSON is sent as it is. */
export function toEventRequest(
  { url, preset }: Endpoint,
  eventJson: string,
  context: ProjectContext,
): WebhookRequest {
  // `findEventsJson` wrote it.
  const event = JSON.parse(eventJson) as Event
  if (preset !== 'standard')
    return formatForPreset(preset, url, { ...event, projectName: context.project.name })
  const data = `${eventJson.slice(0, -1)},${toContextJson(context).slice(1)}`
  return {
    url,
    body: `{"type":"event.created","timestamp":${JSON.stringify(event.timestamp)},"data":${data}}`,
  }
}

/** The request of a test; a preset gets a made-up event. */
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

import { createHash } from 'node:crypto'
import type { Queryable } from '../db/sql.ts'
import { findEventJson } from '../events/read.ts'
import { toId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { toEventRequest, toMessageId, toTestMessageId, toTestRequest } from './message.ts'
import type { Preset } from './presets.ts'
import type { AttemptRequest } from './schema.ts'
import { CONTENT_TYPE } from './signing.ts'
import { toPlace } from './webhooks.ts'

/** What is kept of a request, and what it was about; ids are uuids. */
export interface KeptRequest {
  attemptId: string
  eventId: string | null
  startedAt: Date
  host: string
  preset: Preset
  bodyHash: Buffer
}

const GONE = 'The event was deleted, and the body with it'
const CHANGED = 'What the body is made of has changed since: this is what would be sent today'

/**
 * The request of an attempt, for those who may see the webhook's URL. Its body is made anew from the event, and the hash
 * of what was sent tells whether it is the same. Undefined when the webhook is gone.
 */
export async function findRequest(
  sql: Queryable,
  { projectId, webhookId }: { projectId: string; webhookId: string },
  kept: KeptRequest,
  secrets: Secrets,
): Promise<AttemptRequest | undefined> {
  const [row] = await sql<
    { url: string; project: string; organization_id: string; organization: string }[]
  >`
    select w.url, p.name as project, o.id as organization_id, o.name as organization
    from webhooks w
      join projects p on p.id = w.project_id
      join organizations o on o.id = p.organization_id
    where w.project_id = ${projectId} and w.id = ${webhookId} and w.deleted_at is null
  `
  if (!row) return undefined
  const { attemptId, eventId, startedAt, host, preset } = kept
  const endpoint = { url: secrets.open(row.url, toPlace('url', webhookId)), preset }
  const origin = {
    project: { id: projectId, name: row.project },
    organization: { id: row.organization_id, name: row.organization },
  }
  const eventJson =
    eventId === null ? undefined : await findEventJson(sql, projectId, toId('evt', eventId))
  const body =
    eventId === null
      ? toTestRequest(endpoint, origin, startedAt.getTime()).body
      : eventJson && toEventRequest(endpoint, eventJson, origin).body
  return {
    method: 'POST',
    headers: {
      host,
      'content-type': CONTENT_TYPE,
      'webhook-id': eventId === null ? toTestMessageId(attemptId) : toMessageId(eventId, webhookId),
      'webhook-timestamp': String(Math.floor(startedAt.getTime() / 1000)),
    },
    body: body ?? null,
    note: body === undefined ? GONE : toBodyHash(body).equals(kept.bodyHash) ? null : CHANGED,
  }
}

export function toBodyHash(body: string): Buffer {
  return createHash('sha256').update(body).digest()
}

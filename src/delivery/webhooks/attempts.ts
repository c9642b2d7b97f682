import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { findEventJson } from '../../log/events/read.ts'
import {
  hashBody,
  toEventRequest,
  toMessageId,
  toTestMessageId,
  toTestRequest,
  type Endpoint,
  type ProjectContext,
} from './message.ts'
import type { Preset } from './presets.ts'
import type { Attempt, AttemptDetail, AttemptRequest } from './webhook-schema.ts'
import { toSealedCell } from './sealing.ts'
import { CONTENT_TYPE } from './signing.ts'
import type { WebhookTargetId } from './target.ts'
import { webhookNotFound, toWebhookUuid } from './webhooks.ts'

const BODY_GONE = 'The event was deleted, so its body cannot be rebuilt'
const BODY_CHANGED =
  'The event or the names in it have changed since. This is the body as it would be sent today'

/** A stored attempt. Ids are uuids. */
export type AttemptRow = Omit<Attempt, 'startedAt'> & { startedAt: Date }

/** The stored part of an attempt's request. */
interface StoredRequest {
  host: string
  preset: Preset
  bodyHash: Buffer
}

/**
 * Returns a page of a webhook's attempts, newest first. Throws `not_found` if the project has no
 * such webhook.
 */
export async function listAttempts(
  sql: Queryable,
  { projectId, id }: { projectId: string; id: string },
  query: PageQuery,
): Promise<Page<Attempt>> {
  const webhookId = toWebhookUuid(id)
  const { after, rows } = parsePageQuery('att', query)
  const [known] = await sql`
    select id from webhooks
    where project_id = ${projectId} and id = ${webhookId} and deleted_at is null
  `
  if (!known) throw webhookNotFound()
  const found = await sql<AttemptRow[]>`
    select ${attemptColumns(sql)}
    from webhook_attempts a
    where a.project_id = ${projectId} and a.webhook_id = ${webhookId}
      ${after === undefined ? sql`` : sql`and a.id < ${after}`}
    order by a.id desc
    limit ${rows}
  `
  return toPage(found.map(toAttempt), query, attempt => attempt.id)
}

/** Returns an attempt with its request. Throws `not_found`. */
export async function getAttempt(
  sql: Queryable,
  { projectId, id, attemptId }: { projectId: string; id: string; attemptId: string },
  secrets: Secrets,
): Promise<AttemptDetail> {
  const targetId = toWebhookUuid(id)
  const [row] = await sql<(AttemptRow & StoredRequest)[]>`
    select ${attemptColumns(sql)}, a.host, a.preset, a.body_hash as "bodyHash"
    from webhook_attempts a
      join webhooks w on w.project_id = a.project_id and w.id = a.webhook_id and w.deleted_at is null
    where a.project_id = ${projectId} and a.webhook_id = ${targetId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!row) throw attemptNotFound()
  const { host, preset, bodyHash, ...attempt } = row
  const stored = { host, preset, bodyHash }
  const request = await findRequest(sql, { projectId, targetId }, { ...attempt, stored }, secrets)
  return { ...toAttempt(attempt), request }
}

export function attemptNotFound(): Fault {
  return new Fault('not_found', 'No attempt of this webhook has this id')
}

export function toAttempt(row: AttemptRow): Attempt {
  return {
    ...row,
    id: toId('att', row.id),
    eventId: row.eventId && row.kind === 'event.created' ? toId('evt', row.eventId) : null,
    startedAt: row.startedAt.toISOString(),
  }
}

function attemptColumns(sql: Queryable) {
  return sql`
    a.id, a.kind, a.event_id as "eventId", a.number, a.outcome, a.status, a.error, a.reason, a.response,
    a.latency_ms as "latencyMs", a.started_at as "startedAt",
    (
      select e.title
      from event_by_id(a.project_id, a.event_id) e
      where a.kind = 'event.created' and e.deleted_at is null
    ) as "eventTitle"
  `
}

/**
 * Rebuilds the request of an attempt. The body comes from the event as it is today; the stored hash
 * tells whether that is the body that was sent. Null if the webhook was deleted.
 */
async function findRequest(
  sql: Queryable,
  { projectId, targetId }: WebhookTargetId,
  attempt: AttemptRow & { stored: StoredRequest },
  secrets: Secrets,
): Promise<AttemptRequest | null> {
  const [row] = await sql<
    { url: string; project: string; organization_id: string; organization: string }[]
  >`
    select w.url, p.name as project, o.id as organization_id, o.name as organization
    from webhooks w
      join projects p on p.id = w.project_id
      join organizations o on o.id = p.organization_id
    where w.project_id = ${projectId} and w.id = ${targetId} and w.deleted_at is null
  `
  if (!row) return null
  const { id, eventId, startedAt, stored } = attempt
  const url = secrets.open(row.url, toSealedCell('url', targetId))
  const endpoint = { url, preset: stored.preset }
  const context = {
    project: { id: projectId, name: row.project },
    organization: { id: row.organization_id, name: row.organization },
  }
  const content = { projectId, eventId, startedAt }
  const body = await rebuildBody(sql, content, { endpoint, context })
  return {
    method: 'POST',
    headers: {
      host: stored.host,
      'content-type': CONTENT_TYPE,
      'webhook-id': eventId === null ? toTestMessageId(id) : toMessageId(eventId, targetId),
      'webhook-timestamp': String(Math.floor(startedAt.getTime() / 1000)),
    },
    body: body ?? null,
    note:
      body === undefined ? BODY_GONE : hashBody(body).equals(stored.bodyHash) ? null : BODY_CHANGED,
  }
}

/** Returns the body of an attempt as it would be sent now; undefined if its content was deleted. */
async function rebuildBody(
  sql: Queryable,
  {
    projectId,
    eventId,
    startedAt,
  }: Pick<AttemptRow, 'eventId' | 'startedAt'> & { projectId: string },
  { endpoint, context }: { endpoint: Endpoint; context: ProjectContext },
): Promise<string | undefined> {
  if (eventId === null) return toTestRequest(endpoint, context, startedAt.getTime()).body
  const eventJson = await findEventJson(sql, projectId, toId('evt', eventId))
  return eventJson && toEventRequest(endpoint, eventJson, context).body
}

import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { findEventJson } from '../../log/events/read.ts'
import { findAcknowledged } from './acknowledged.ts'
import {
  hashBody,
  toEventRequest,
  toMessageId,
  toTestMessageId,
  toTestRequest,
  type ProjectContext,
} from './message.ts'
import type { Preset } from './presets.ts'
import type { Attempt, AttemptDetail } from './webhook-schema.ts'
import { openOwnRequest } from './own-request.ts'
import { toSealedCell } from './sealing.ts'
import { CONTENT_TYPE } from './signing.ts'
import { webhookNotFound, toWebhookUuid } from './webhooks.ts'

const BODY_GONE = 'The event was deleted, so its body cannot be rebuilt'
const BODY_CHANGED =
  'The event, the names in it or the webhook have changed since. This is the body as it would be sent today'

/** The parts from which the request of an attempt is rebuilt. */
interface StoredRequest {
  host: string
  preset: Preset
  bodyHash: Buffer
  url: string
  own: string | null
  context: ProjectContext
}

/** A stored attempt. Ids are uuids. */
export type AttemptRow = Omit<Attempt, 'startedAt'> & { startedAt: Date }

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

/**
 * Returns an attempt with its request. The body comes from the event as it is today; the stored
 * hash tells whether that is the body that was sent. Throws `not_found`.
 */
export async function getAttempt(
  sql: Queryable,
  { projectId, id, attemptId }: { projectId: string; id: string; attemptId: string },
  secrets: Secrets,
): Promise<AttemptDetail> {
  const targetId = toWebhookUuid(id)
  const [row] = await sql<(AttemptRow & StoredRequest)[]>`
    select
      ${attemptColumns(sql)}, a.host, a.preset, a.body_hash as "bodyHash", w.url, w.own_request as own,
      json_build_object(
        'project', json_build_object('id', p.id, 'name', p.name),
        'organization', json_build_object('id', o.id, 'name', o.name)
      ) as context
    from webhook_attempts a
      join webhooks w on w.project_id = a.project_id and w.id = a.webhook_id and w.deleted_at is null
      join projects p on p.id = w.project_id
      join organizations o on o.id = p.organization_id
    where a.project_id = ${projectId} and a.webhook_id = ${targetId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!row) throw attemptNotFound()
  const { host, preset, bodyHash, url, own, context, ...attempt } = row
  const { eventId, startedAt } = attempt
  const endpoint = {
    url: secrets.open(url, toSealedCell('url', targetId)),
    preset,
    body: openOwnRequest(secrets, targetId, own).body,
  }
  const eventJson = eventId && (await findEventJson(sql, projectId, toId('evt', eventId)))
  const isAcknowledgement = attempt.kind === 'event.acknowledged'
  const found =
    isAcknowledgement && eventId ? await findAcknowledged(sql, projectId, { eventId }) : undefined
  // The event was deleted, or another one of its thread was acknowledged since.
  if (isAcknowledgement && found?.eventId !== eventId)
    return { ...toAttempt(attempt), request: null }
  const sent =
    eventId === null
      ? toTestRequest(endpoint, context, startedAt.getTime())
      : eventJson && toEventRequest(endpoint, eventJson, context, found?.acknowledged)
  const body = sent ? sent.body : null
  return {
    ...toAttempt(attempt),
    request: {
      method: 'POST',
      headers: {
        host,
        'content-type': CONTENT_TYPE,
        'webhook-id':
          eventId === null
            ? toTestMessageId(row.id)
            : toMessageId(found?.acknowledgementId ?? eventId, targetId),
        'webhook-timestamp': String(Math.floor(startedAt.getTime() / 1000)),
      },
      body,
      note: body === null ? BODY_GONE : hashBody(body).equals(bodyHash) ? null : BODY_CHANGED,
    },
  }
}

export function attemptNotFound(): Fault {
  return new Fault('not_found', 'No attempt of this webhook has this id')
}

export function toAttempt(row: AttemptRow): Attempt {
  return {
    ...row,
    id: toId('att', row.id),
    eventId: row.eventId && row.kind.startsWith('event.') ? toId('evt', row.eventId) : null,
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
      where a.kind like 'event.%' and e.deleted_at is null
    ) as "eventTitle"
  `
}

import type { Queryable, Tx } from '../db/sql.ts'
import type { EgressResult } from '../egress/egress.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { newId, toId } from '../ids.ts'
import type { Attempt } from './schema.ts'
import type { Verdict } from './verdict.ts'
import { noWebhook, toWebhookUuid } from './webhooks.ts'

const RESPONSE_BYTES = 1024

/** An attempt that was made; ids are uuids. */
export interface Made {
  projectId: string
  webhookId: string
  /** Null for a test. */
  eventId: string | null
  number: number
  startedAt: Date
  result: EgressResult
  verdict: Verdict
}

interface Row {
  id: string
  kind: Attempt['kind']
  event_id: string | null
  number: number
  outcome: Attempt['outcome']
  status: number | null
  error: string | null
  reason: string
  response: string | null
  latency_ms: number
  started_at: Date
}

/** Keeps an attempt; returns it as it is shown. */
export async function keepAttempt(tx: Tx, made: Made): Promise<Attempt> {
  const { projectId, webhookId, eventId, result, verdict } = made
  const row: Row = {
    id: newId('att').uuid,
    kind: eventId === null ? 'webhook.test' : 'event.created',
    event_id: eventId,
    number: made.number,
    outcome: verdict.kind === 'delivered' ? 'delivered' : 'failed',
    status: 'error' in result ? null : result.status,
    error: 'error' in result ? result.error : null,
    reason: verdict.reason,
    response: 'error' in result ? null : toText(result.body),
    latency_ms: result.latencyMs,
    started_at: made.startedAt,
  }
  await tx`
    insert into webhook_attempts (
      project_id, id, webhook_id, event_id, kind, number, outcome, status, error, reason, response,
      latency_ms, started_at
    )
    values (
      ${projectId}, ${row.id}, ${webhookId}, ${eventId}, ${row.kind}, ${row.number}, ${row.outcome},
      ${row.status}, ${row.error}, ${row.reason}, ${row.response}, ${row.latency_ms}, ${row.started_at}
    )
  `
  return toAttempt(row)
}

/** A page of a webhook's attempts, newest first. Throws `not_found` for a webhook that is not of the project. */
export async function listAttempts(
  sql: Queryable,
  { projectId, id }: { projectId: string; id: string },
  query: PageQuery,
): Promise<Page<Attempt>> {
  const webhookId = toWebhookUuid(id)
  const { after, rows } = toSlice('att', query)
  const [known] = await sql`
    select id from webhooks
    where project_id = ${projectId} and id = ${webhookId} and deleted_at is null
  `
  if (!known) throw noWebhook()
  const found = await sql<Row[]>`
    select
      id, kind, event_id, number, outcome, status, error, reason, response, latency_ms, started_at
    from webhook_attempts
    where project_id = ${projectId} and webhook_id = ${webhookId}
      ${after === undefined ? sql`` : sql`and id < ${after}`}
    order by id desc
    limit ${rows}
  `
  return toPage(found.map(toAttempt), query, attempt => attempt.id)
}

function toAttempt(row: Row): Attempt {
  return {
    id: toId('att', row.id),
    kind: row.kind,
    eventId: row.event_id === null ? null : toId('evt', row.event_id),
    number: row.number,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
    reason: row.reason,
    response: row.response,
    latencyMs: row.latency_ms,
    startedAt: row.started_at.toISOString(),
  }
}

/** The beginning of an answer, as far as it is text that Postgres can keep. */
function toText(body: Uint8Array): string {
  // In a stream the decoder keeps back a character that is cut in two.
  const text = new TextDecoder().decode(body.subarray(0, RESPONSE_BYTES), { stream: true })
  return text.replaceAll('\u0000', '\ufffd')
}

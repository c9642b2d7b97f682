import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import type { EgressResult } from '../egress/egress.ts'
import { Fault } from '../errors.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { newId, parseId, toId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { checksPlannedOnce, committedSoon } from '../outbox/settings.ts'
import { CLOSED } from './breaker.ts'
import type { Preset, Shaped } from './presets.ts'
import { findRequest, toBodyHash } from './request.ts'
import type { Attempt, AttemptDetail } from './schema.ts'
import type { Verdict } from './verdict.ts'
import { noWebhook, toWebhookUuid } from './webhooks.ts'

const RESPONSE_BYTES = 1024

/** An attempt that was made; ids are uuids. */
export interface Made {
  id: string
  projectId: string
  webhookId: string
  /** Null for a test. */
  eventId: string | null
  number: number
  startedAt: Date
  preset: Preset
  request: Shaped
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

interface KeptRow {
  host: string | null
  preset: Preset | null
  body_hash: Buffer | null
}

/** Keeps an attempt: a success forgives the webhook everything. Returns the attempt as it is shown. */
export async function keepAttempt(tx: Tx, made: Made): Promise<Attempt> {
  const { projectId, webhookId, verdict } = made
  if (verdict.kind === 'delivered') {
    await tx`
      update webhooks set
        failures = ${CLOSED.failures}, failing_since = null, pauses = ${CLOSED.pauses}, paused_until = null
      where project_id = ${projectId} and id = ${webhookId} and (failures > 0 or paused_until is not null)
    `
  }
  await insertAttempts(tx, [made], tx`true`)
  return toAttempt(toRow(made))
}

/**
 * Keeps successes, of webhooks that have nothing to be forgiven and that nobody holds: of one that is locked the others know
 * nothing. Returns which were kept; `keepAttempt` is for the rest.
 */
export function keepSuccesses(sql: Queryable, made: readonly Made[]): Promise<Set<string>> {
  const isFree = sql`exists (
    select
    from webhooks w
    where w.project_id = a.project_id and w.id = a.webhook_id and w.failures = 0 and w.paused_until is null
    for key share skip locked
  )`
  return insertAttempts(sql, made, isFree)
}

/** Inserts those for which a condition of `a` holds, and returns their ids. */
async function insertAttempts(
  sql: Queryable,
  made: readonly Made[],
  condition: Fragment,
): Promise<Set<string>> {
  const rows = made.map(toRow)
  const column = (value: (row: Row) => string | number | null) => toArray(rows.map(value))
  const more = (value: (one: Made) => string) => toArray(made.map(value))
  const inserted = await sql<{ id: string }[]>`
    insert into webhook_attempts (
      project_id, id, webhook_id, event_id, kind, number, outcome, status, error, reason, response,
      latency_ms, started_at, host, preset, body_hash
    )
    select
      a.project_id, a.id, a.webhook_id, a.event_id, a.kind, a.number, a.outcome, a.status, a.error, a.reason,
      a.response, a.latency_ms, a.started_at, a.host, a.preset, a.body_hash
    from unnest(
        ${more(({ projectId }) => projectId)}::uuid[],
        ${column(({ id }) => id)}::uuid[],
        ${more(({ webhookId }) => webhookId)}::uuid[],
        ${column(({ event_id }) => event_id)}::uuid[],
        ${column(({ kind }) => kind)}::text[],
        ${column(({ number }) => number)}::int[],
        ${column(({ outcome }) => outcome)}::text[],
        ${column(({ status }) => status)}::int[],
        ${column(({ error }) => error)}::text[],
        ${column(({ reason }) => reason)}::text[],
        ${column(({ response }) => response)}::text[],
        ${column(({ latency_ms }) => latency_ms)}::int[],
        ${column(({ started_at }) => started_at.toISOString())}::timestamptz[],
        ${more(({ request }) => new URL(request.url).host)}::text[],
        ${more(({ preset }) => preset)}::text[],
        ${more(({ request }) => `\\x${toBodyHash(request.body).toString('hex')}`)}::bytea[]
      ) as a (
        project_id, id, webhook_id, event_id, kind, number, outcome, status, error, reason, response,
        latency_ms, started_at, host, preset, body_hash
      )
      cross join ${committedSoon(sql)}
      cross join ${checksPlannedOnce(sql)}
    where ${condition}
    returning id
  `
  return new Set(inserted.map(({ id }) => id))
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

/** An attempt with its request. Throws `not_found`. */
export async function getAttempt(
  sql: Queryable,
  { projectId, id, attemptId }: { projectId: string; id: string; attemptId: string },
  secrets: Secrets,
): Promise<AttemptDetail> {
  const webhookId = toWebhookUuid(id)
  const [row] = await sql<(Row & KeptRow)[]>`
    select
      a.id, a.kind, a.event_id, a.number, a.outcome, a.status, a.error, a.reason, a.response, a.latency_ms,
      a.started_at, a.host, a.preset, a.body_hash
    from webhook_attempts a
      join webhooks w on w.project_id = a.project_id and w.id = a.webhook_id and w.deleted_at is null
    where a.project_id = ${projectId} and a.webhook_id = ${webhookId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!row) throw noAttempt()
  const { host, preset, body_hash: bodyHash } = row
  // Attempts from before requests were remembered have none of it.
  const kept = host !== null && preset !== null && bodyHash !== null && { host, preset, bodyHash }
  const about = { attemptId: row.id, eventId: row.event_id, startedAt: row.started_at }
  const request = kept
    ? await findRequest(sql, { projectId, webhookId }, { ...about, ...kept }, secrets)
    : undefined
  return { ...toAttempt(row), request: request ?? null }
}

export function noAttempt(): Fault {
  return new Fault('not_found', 'No attempt of this webhook has this id')
}

function toRow({ id, eventId, number, startedAt, result, verdict }: Made): Row {
  return {
    id,
    kind: eventId === null ? 'webhook.test' : 'event.created',
    event_id: eventId,
    number,
    outcome: verdict.kind === 'delivered' ? 'delivered' : 'failed',
    status: 'error' in result ? null : result.status,
    error: 'error' in result ? result.error : null,
    reason: verdict.reason,
    response: 'error' in result ? null : toText(result.body),
    latency_ms: result.latencyMs,
    started_at: startedAt,
  }
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

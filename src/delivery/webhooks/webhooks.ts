import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { toBreaker, toBreakerState, type BreakerRow } from './circuit-breaker.ts'
import type { Preset } from './presets.ts'
import type { Webhook, WebhookType } from './webhook-schema.ts'
import { openOwnRequest } from './own-request.ts'
import { toSealedCell } from './sealing.ts'

/** The project whose webhooks are read, and who reads them. */
export interface WebhookView {
  projectId: string
  /** Admins see the URL, the body and the names of headers. */
  isAdmin: boolean
  secrets: Secrets
}

interface Row extends BreakerRow {
  id: string
  name: string
  url: string
  host: string
  type: WebhookType
  preset: Preset
  has_all_channels: boolean
  channels: string | null
  own: string | null
  view_id: string | null
  previous_until: Date | null
  created_at: Date
  updated_at: Date
  disabled_at: Date | null
  disabled_reason: string | null
  backlog_full_at: Date | null
  now: Date
}

/** Returns a page of a project's webhooks, newest first. */
export async function listWebhooks(
  sql: Queryable,
  view: WebhookView,
  query: PageQuery,
): Promise<Page<Webhook>> {
  const { after, rows } = parsePageQuery('whk', query)
  const found = await selectWebhooks(
    sql,
    view.projectId,
    sql`${after === undefined ? sql`` : sql`and w.id < ${after}`} order by w.id desc limit ${rows}`,
  )
  return toPage(
    found.map(row => toWebhook(row, view)),
    query,
    ({ id }) => id,
  )
}

/** Returns a webhook. Throws `not_found`. */
export async function getWebhook(sql: Queryable, view: WebhookView, id: string): Promise<Webhook> {
  const [row] = await selectWebhooks(sql, view.projectId, sql`and w.id = ${toWebhookUuid(id)}`)
  if (!row) throw webhookNotFound()
  return toWebhook(row, view)
}

/** Returns the uuid of a webhook's public id. An invalid id gives a uuid that no webhook has. */
export function toWebhookUuid(id: string): string {
  return parseId('whk', id) ?? newId('whk').uuid
}

export function webhookNotFound(): Fault {
  return new Fault('not_found', 'No webhook of this project has this id')
}

/** A webhook whose row is locked, with sealed secrets. */
export interface LockedWebhook {
  /** The uuid. */
  id: string
  name: string
  host: string
  url: string
  type: WebhookType
  preset: Preset
  own: string | null
  secret: string
  previousSecret: string | null
  previousUntil: Date | null
  isEnabled: boolean
  testedAt: Date | null
  now: Date
}

/** Locks a webhook. Throws `not_found`. */
export async function lockWebhook(tx: Tx, projectId: string, id: string): Promise<LockedWebhook> {
  const [row] = await tx<LockedWebhook[]>`
    select
      id, name, host, url, type, preset, own_request as own, secret, previous_secret as "previousSecret",
      previous_until as "previousUntil", disabled_at is null as "isEnabled", tested_at as "testedAt",
      now() as now
    from webhooks
    where project_id = ${projectId} and id = ${toWebhookUuid(id)} and deleted_at is null
    for no key update
  `
  if (!row) throw webhookNotFound()
  return row
}

/** Returns the names of webhooks by uuid. Deleted ones are left out. */
export async function getWebhookNames(
  sql: Queryable,
  { projectId, targetIds }: { projectId: string; targetIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; name: string }[]>`
    select id, name
    from webhooks
    where project_id = ${projectId} and id = any(${toArray(targetIds)}::uuid[]) and deleted_at is null
  `
  return new Map(rows.map(({ id, name }) => [id, name]))
}

async function selectWebhooks(sql: Queryable, projectId: string, tail: Fragment): Promise<Row[]> {
  return await sql<Row[]>`
    select
      w.id, w.name, w.url, w.host, w.type, w.preset, w.has_all_channels, w.own_request as own, w.view_id,
      (
        select string_agg(c.public_id, ' ' order by c.id)
        from webhook_channels wc
          cross join lateral channel_by_id(wc.project_id, wc.channel_id) c
        where wc.project_id = w.project_id and wc.webhook_id = w.id
      ) as channels,
      case when is_unexpired(w.previous_until, '7 days') then w.previous_until end as previous_until,
      w.created_at, w.updated_at, w.disabled_at, w.disabled_reason,
      w.failures, w.failing_since, w.pauses, ${pausedUntil(sql)} as paused_until, w.backlog_full_at, now() as now
    from webhooks w
    where w.project_id = ${projectId} and w.deleted_at is null ${tail}
  `
}

/** Returns an expression: the end of the pause of the webhook `w`; null if it has none. */
export function pausedUntil(sql: Queryable): Fragment {
  return sql`(
    select t.paused_until
    from delivery_targets t
    where t.kind = 'webhook' and t.id = w.id and isfinite(t.paused_until)
  )`
}

function toWebhook(row: Row, { isAdmin, secrets }: WebhookView): Webhook {
  const own = openOwnRequest(secrets, row.id, isAdmin ? row.own : null)
  const state = toBreakerState(toBreaker(row), row.now.getTime())
  return {
    id: toId('whk', row.id),
    name: row.name,
    host: row.host,
    url: isAdmin ? secrets.open(row.url, toSealedCell('url', row.id)) : null,
    type: row.type,
    preset: row.preset,
    channels: row.has_all_channels ? null : (row.channels?.split(' ') ?? []),
    body: own.body,
    headers: Object.keys(own.headers),
    viewId: row.view_id && toId('viw', row.view_id),
    isEnabled: row.disabled_at === null,
    disabledAt: row.disabled_at?.toISOString() ?? null,
    disabledReason: row.disabled_reason,
    breaker: {
      state,
      failures: row.failures,
      failingSince: row.failing_since?.toISOString() ?? null,
      pausedUntil: (state !== 'closed' && row.paused_until?.toISOString()) || null,
    },
    backlogFullAt: row.backlog_full_at?.toISOString() ?? null,
    previousSecretUntil: row.previous_until?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}

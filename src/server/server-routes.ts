import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { SessionGuard } from '../access/guard/guard.ts'
import { OrganizationUsage, ServerInfo } from '../dashboard/server-schema.ts'
import type { QuotaLimits } from '../base/config.ts'
import type { Pool } from '../database/pool.ts'
import { succeed } from '../http/call.ts'
import { SuccessOf } from '../http/envelope.ts'
import { toId } from '../base/ids.ts'
import { readDiskUsage } from './gauges.ts'
import type { Site } from '../http/site.ts'
import type { Outbox } from '../delivery/outbox/outbox.ts'
import { RUNTIME } from '../base/platform.ts'
import { chooseVapidSubject, toVapidKeyId } from '../delivery/push/vapid.ts'
import { VERSION } from '../base/version.ts'

/** Pending deliveries are counted up to this number. */
const MAX_COUNTED = 100_000
/** The number of organizations whose usage is listed, and of channels that are counted for each. */
const MAX_LISTED = 50
const MAX_COUNTED_CHANNELS = 10_000

export interface ServerParts {
  guard: SessionGuard
  site: Site
  isUrlSet: boolean
  databaseKind: string
  dataDir: string
  startedAt: Date
  outbox: Pick<Outbox, 'oldestMs' | 'running'>
  vapidSubject: string | undefined
  quotaLimits: QuotaLimits
  /** Returns the number of open live feeds. */
  countSockets(): number
}

type UsageRow = Record<'id' | 'name', string> &
  Record<'events' | 'bytes' | 'channels' | 'webhooks', number>

interface Row {
  version: string
  bytes: string
  projects: number
  events: string
  push: number
  webhook: number
  key_id: string | null
  devices: number
  operator: string | null
}

/** Serves the state of the server to its operators. */
export function serverRoutes({ guard, ...parts }: ServerParts) {
  return new Elysia({ name: 'server' })
    .use(guard)
    .get(
      '/api/server',
      async ({ call }) => {
        const [row, disk] = await Promise.all([readRow(call.pool), readDiskUsage(parts.dataDir)])
        return succeed(call, 200, toInfo(parts, row, disk))
      },
      {
        installation: 'server.read',
        response: { 200: SuccessOf(ServerInfo) },
        detail: {
          operationId: 'getServer',
          summary: 'Get the state of the server',
          tags: ['Server'],
        },
      },
    )
    .get(
      '/api/server/organizations',
      async ({ call }) =>
        succeed(call, 200, { items: await listUsage(call.pool, parts.quotaLimits) }),
      {
        installation: 'server.read',
        response: { 200: SuccessOf(Type.Object({ items: Type.Array(OrganizationUsage) })) },
        detail: {
          operationId: 'listOrganizationUsage',
          summary: 'List what organizations use of their quotas',
          description: 'The 50 organizations with the most bytes of events and users today.',
          tags: ['Server'],
        },
      },
    )
}

async function listUsage(pool: Pool, limits: QuotaLimits): Promise<OrganizationUsage[]> {
  const rows = await pool.run(
    sql => sql<UsageRow[]>`
      with listed as (
        select
          o.id, o.name,
          case when u.minute = date_trunc('minute', now()) then u.events else 0 end::float8 as events,
          case when u.day = date_trunc('day', now(), 'UTC') then u.bytes else 0 end::float8 as bytes
        from organizations o
          left join organization_usage u on u.organization_id = o.id
        where o.deleted_at is null
        order by bytes desc, o.created_at
        limit ${MAX_LISTED}
      )
      select
        id, name, events, bytes,
        (
          select count(*)::int
          from (
            select
            from projects p
              cross join lateral channels_of(p.id) c
            where p.organization_id = listed.id and p.deleted_at is null
            limit ${MAX_COUNTED_CHANNELS}
          ) as counted
        ) as channels,
        (
          select count(*)::int
          from projects p
            join webhooks w on w.project_id = p.id
          where p.organization_id = listed.id and p.deleted_at is null and w.deleted_at is null
        ) as webhooks
      from listed
      order by bytes desc, name
    `,
  )
  return rows.map(({ id, name, events, bytes, channels, webhooks }) => ({
    id: toId('org', id),
    name,
    events: { used: events, limit: limits.eventsPerMinute },
    bytes: { used: bytes, limit: limits.bytesPerDay },
    channels: { used: channels, limit: limits.channels },
    webhooks: { used: webhooks, limit: limits.webhooks },
  }))
}

async function readRow(pool: Pool): Promise<Row> {
  const [logs] = await pool.run(
    sql => sql<[Pick<Row, 'events'>]>`
      select coalesce(sum(last_seq), 0)::bigint as events from event_logs
    `,
  )
  const [row] = await pool.run(
    sql => sql<[Omit<Row, 'events'>]>`
      select
        current_setting('server_version') as version, database_bytes() as bytes,
        (select count(*)::int from projects where deleted_at is null) as projects,
        (
          select count(*)::int
          from (select from outbox where kind = 'push' limit ${MAX_COUNTED}) as pending
        ) as push,
        (
          select count(*)::int
          from (select from outbox where kind = 'webhook' limit ${MAX_COUNTED}) as pending
        ) as webhook,
        (select id from vapid_keys) as key_id,
        (select count(*)::int from push_subscriptions) as devices,
        (select email from accounts where is_operator order by created_at, id limit 1) as operator
    `,
  )
  return { ...row, ...logs }
}

function toInfo(parts: Omit<ServerParts, 'guard'>, row: Row, disk: ServerInfo['disk']): ServerInfo {
  const { url, isSecure } = parts.site
  const { oldestMs, running } = parts.outbox
  return {
    version: VERSION,
    runtime: RUNTIME,
    url,
    isUrlSet: parts.isUrlSet,
    isHttps: isSecure,
    startedAt: parts.startedAt.toISOString(),
    database: {
      kind: parts.databaseKind,
      version: row.version,
      bytes: Number(row.bytes),
    },
    disk,
    projects: row.projects,
    events: Number(row.events),
    sockets: parts.countSockets(),
    deliveries: {
      pending: { push: row.push, webhook: row.webhook },
      oldestMs: Math.round(oldestMs),
      running,
    },
    push: {
      keyId: row.key_id && toVapidKeyId({ id: row.key_id }),
      subject: chooseVapidSubject(parts.vapidSubject, row.operator) ?? null,
      isSubjectSet: parts.vapidSubject !== undefined,
      devices: row.devices,
    },
  }
}

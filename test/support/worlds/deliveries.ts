import { createPool } from '../../../src/database/pool.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { newId, parseId } from '../../../src/base/ids.ts'
import type { DeliveryKind } from '../../../src/delivery/outbox/delivery-kind.ts'
import { startOutbox, type Outbox } from '../../../src/delivery/outbox/outbox.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import { addTarget, createTargets } from './delivery-kind.ts'
import { cloneDatabase } from '../servers/postgres.ts'
import { newProject } from './project.ts'
import { openSql } from '../sql.ts'

interface PendingRow {
  event_id: string
  target_id: string
  attempts: number
  claim_count: number
  is_taken: boolean
  reason: string | null
  due_in_s: number
}

interface EndedRow {
  event_id: string
  target_id: string
  state: string
  attempts: number
  latency_ms: string | null
  reason: string | null
}

/** A database with targets and outboxes like those of servers, without a server. */
export interface Deliveries extends AsyncDisposable {
  sql: Sql
  databaseUrl: string
  /** Starts a dispatcher and a worker like those of a separate process, which end soon. */
  start(kind: DeliveryKind, options?: { graceMs?: number }): Promise<Outbox>
  /** Returns a project with one target. */
  newTarget(): Promise<{ projectId: string; targetId: string }>
  /** Returns the pending deliveries of a project. */
  pending(projectId: string): Promise<PendingRow[]>
  /** Returns the ended deliveries of a project. */
  ended(projectId: string): Promise<EndedRow[]>
  /** Appends `count` events to a project's log like the appender; returns their uuids in order. */
  append(projectId: string, count?: number): Promise<string[]>
  /** Stops what a test has started, and removes its targets and pending deliveries. */
  clear(): Promise<void>
}

export async function openDeliveries(): Promise<Deliveries> {
  const databaseUrl = await cloneDatabase()
  const sql = openSql(databaseUrl, { max: 4 })
  await createTargets(sql)
  const closers: (() => Promise<void>)[] = []
  const stopAll = () => Promise.all(closers.splice(0).map(close => close()))
  return {
    sql,
    databaseUrl,
    async start(kind, options = {}) {
      const pool = createPool(databaseUrl, { name: 'worker', max: 4, settings: WORKER_SETTINGS })
      const outbox = await startOutbox({ pool, kinds: [kind], graceMs: 100, ...options })
      closers.push(async () => {
        await outbox.stop()
        await pool.end()
      })
      return outbox
    },
    async newTarget() {
      const { id: projectId } = await newProject({ sql, url: '' })
      return { projectId, targetId: await addTarget(sql, projectId) }
    },
    pending: async projectId => [
      ...(await sql<PendingRow[]>`
        select
          event_id, target_id, attempts, claim_count, token is not null as is_taken, reason,
          extract(epoch from available_at - now())::float8 as due_in_s
        from outbox
        where project_id = ${projectId}
        order by id
      `),
    ],
    ended: async projectId => [
      ...(await sql<EndedRow[]>`
        select event_id, target_id, state, attempts, latency_ms, reason
        from delivery_records
        where project_id = ${projectId}
        order by event_id, target_id
      `),
    ],
    append: (projectId, count = 1) => appendEvents(sql, projectId, count),
    async clear() {
      await stopAll()
      await sql`truncate test_targets, outbox`
    },
    async [Symbol.asyncDispose]() {
      await stopAll()
      await sql.end({ timeout: 1 })
    },
  }
}

/** Inserts `count` events in one statement under the lock of the log. */
export async function appendEvents(sql: Sql, projectId: string, count: number): Promise<string[]> {
  const channelId = crypto.randomUUID()
  const rows = await sql.begin(async tx => {
    await tx`select from event_logs where project_id = ${projectId} for update`
    await tx`
      insert into channels (project_id, id, public_id, slug, name, created_at)
      values (${projectId}, ${channelId}, 'chn_test', 'test', 'Test', now())
      on conflict (project_id, slug) do nothing
    `
    return await tx<{ id: string }[]>`
      with head as (
        update event_logs set last_seq = last_seq + ${count}
        where project_id = ${projectId}
        returning last_seq - ${count} as first
      ), made as (
        insert into events (
          project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, source, notify
        )
        select
          ${projectId}, new_delivery_id(), c.id, h.first + n, clock_timestamp(), clock_timestamp(), 'New payment',
          '{}', '{}', 'test', true
        from head h
          cross join generate_series(1, ${count}::int) as n
          join channels c on c.project_id = ${projectId} and c.slug = 'test'
        returning id, seq
      )
      select id from made order by seq
    `
  })
  return rows.map(({ id }) => id)
}

/** Inserts a dead letter of a webhook; returns its public id. */
export async function insertDeadLetter(
  { sql }: { sql: Sql },
  projectId: string,
  { eventId, webhookId }: { eventId: string; webhookId: string },
): Promise<string> {
  const { id, uuid } = newId('dlv')
  await sql`
    insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
    values (
      ${uuid}, ${projectId}, ${parseId('evt', eventId) ?? null}, 'webhook', ${parseId('whk', webhookId) ?? null},
      10, 'The receiver answered 500'
    )
  `
  return id
}

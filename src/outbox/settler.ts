import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../db/arrays.ts'
import type { Pool } from '../db/pool.ts'
import { isUnavailable, sqlState, type Sql } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import type { Lease } from './claims.ts'
import { planForeignKeyChecksOnce } from '../db/delivery-settings.ts'
import type { Settlement } from './settlement.ts'

const MAX_BATCH = 500
const MAX_DELAY_MS = 50
const MAX_PAUSE_MS = 1_000

const log = logger('outbox')

type Settled = Lease & Settlement

interface SettlerOptions {
  pool: Pool
  /** Called with a stored batch, and with the ids whose lease was still held. */
  onSettled(batch: readonly Lease[], held: ReadonlySet<string>): void
}

/**
 * Creates a settler. It stores settlements in batches: every 50 ms, or as soon as there are 500.
 */
export function createSettler({ pool, onSettled }: SettlerOptions) {
  let queue: Settled[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined
  let deadlineMs = Infinity

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    return (flushing ??= run().finally(() => {
      flushing = undefined
      if (queue.length > 0 && performance.now() < deadlineMs) schedule()
    }))
  }

  function schedule(): void {
    if (queue.length >= MAX_BATCH) void flush()
    else timer ??= setTimeout(() => void flush(), MAX_DELAY_MS)
  }

  async function run(): Promise<void> {
    do await settle(queue.splice(0, MAX_BATCH))
    while (queue.length >= MAX_BATCH)
  }

  /**
   * Retries until the database stores the batch. A lease that ends meanwhile keeps its delivery
   * from being changed.
   */
  async function settle(batch: Settled[]): Promise<void> {
    for (let pauseMs = 50; batch.length > 0; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      try {
        onSettled(batch, new Set(await pool.run(sql => settleDeliveries(sql, batch))))
        return
      } catch (error) {
        log.warning('Outcomes of deliveries could not be stored, and are stored again: {reason}', {
          deliveries: batch.length,
          reason: toReason(error),
        })
        if (sqlState(error) !== undefined && !isUnavailable(error)) return settleSingly(batch)
        if (performance.now() + pauseMs > deadlineMs) return
        await sleep(pauseMs)
      }
    }
  }

  /**
   * Stores deliveries one by one, after Postgres refused a batch. A refused delivery is claimed
   * again when its lease ends, and given up after 10 claims.
   */
  async function settleSingly(batch: Settled[]): Promise<void> {
    for (const one of batch) {
      try {
        onSettled([one], new Set(await pool.run(sql => settleDeliveries(sql, [one]))))
      } catch (error) {
        const reason = toReason(error)
        log.error('The outcome of a delivery cannot be stored: {reason}', { id: one.id, reason })
        onSettled([one], new Set())
      }
    }
  }

  return {
    add({ id, token }: Lease, settlement: Settlement): void {
      queue.push({ id, token, ...settlement })
      if (!flushing) schedule()
    },
    /**
     * Stores the remaining settlements. Resolves when they are stored, or at `untilMs` of
     * `performance.now()`.
     */
    async drain(untilMs: number): Promise<void> {
      deadlineMs = untilMs
      while ((queue.length > 0 || flushing) && performance.now() < deadlineMs) await flush()
      clearTimeout(timer)
    },
  }
}

/**
 * Stores the settlements of claimed deliveries. A delivery that has ended becomes a record, and
 * also a dead letter if it was given up; any other waits for its next attempt. Returns the ids
 * whose lease the caller still held; other deliveries stay unchanged. Rows are locked in the order
 * of their ids.
 */
export async function settleDeliveries(sql: Sql, settled: readonly Settled[]): Promise<string[]> {
  const column = (value: (one: Settled) => string | number | null) => toArray(settled.map(value))
  const rows = await sql<{ id: string }[]>`
    with held as materialized (
      select i.id, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from unnest(
          ${column(({ id }) => id)}::uuid[],
          ${column(({ token }) => token)}::uuid[],
          ${column(({ state }) => state)}::text[],
          ${column(({ attempts }) => attempts)}::int[],
          ${column(({ delayMs }) => delayMs)}::float8[],
          ${column(({ reason }) => reason)}::text[],
          ${column(({ latencyMs }) => latencyMs)}::bigint[]
        ) as i (id, token, state, attempts, delay_ms, reason, latency_ms)
        join outbox o on o.id = i.id and o.token = i.token
        cross join ${planForeignKeyChecksOnce(sql)}
      order by o.id
      for update of o
    ), ended as (
      delete from outbox o
      using held h
      where o.id = h.id and h.state is not null
      returning
        o.id, o.project_id, o.event_id, o.kind, o.target_id, h.state, o.attempts + h.attempts as attempts,
        coalesce(h.reason, o.reason) as reason, h.latency_ms
    ), records as (
      insert into deliveries (
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms, reason
      )
      select
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms,
        case when state <> 'delivered' then reason end
      from ended
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, state = excluded.state, attempts = excluded.attempts,
        latency_ms = excluded.latency_ms, reason = excluded.reason, at = excluded.at
    ), new_dead_letters as (
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select id, project_id, event_id, kind, target_id, attempts, coalesce(reason, '')
      from ended
      where state = 'dead'
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, attempts = excluded.attempts, reason = excluded.reason, at = excluded.at
    ), waiting as (
      update outbox o set
        available_at = now() + h.delay_ms * interval '1 ms',
        token = null, claim_count = 0, attempts = o.attempts + h.attempts, reason = coalesce(h.reason, o.reason)
      from held h
      where o.id = h.id and h.state is null
    )
    select id from held
  `
  return rows.map(({ id }) => id)
}

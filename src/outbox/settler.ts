import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../db/arrays.ts'
import type { Pool } from '../db/pool.ts'
import { isUnavailable, sqlState, type Sql } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { limitLines, logger } from '../log.ts'
import type { Lease } from './kind.ts'
import type { Settlement } from './settlement.ts'

const MAX_BATCH = 500
/** With this many settlements, a worker without attempts waits for no more of them. */
const IDLE_BATCH = 50
const MAX_DELAY_MS = 50
const MAX_PAUSE_MS = 1_000
/** How often a drain looks whether the expected settlements were added. */
const EXPECTED_MS = 5

const log = logger('outbox')
const reportRefused = limitLines<string>((reason, deliveries, id) =>
  log.error('The outcome of a delivery cannot be stored: {reason}', { id, deliveries, reason }),
)

type Settled = Lease & Settlement

interface SettlerOptions {
  pool: Pool
  /** Called with a stored batch, and with the ids whose lease was lost. */
  onSettled(batch: readonly Lease[], lost: ReadonlySet<string>): void
}

/**
 * Creates a settler. It stores settlements in batches: every 50 ms, or as soon as there are 500.
 */
export function createSettler({ pool, onSettled }: SettlerOptions) {
  let queue: Settled[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined
  let deadlineMs = Infinity
  let expected = 0

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
        reportRefused(reason, one.id)
        onSettled([one], new Set([one.id]))
      }
    }
  }

  function add({ id, token }: Lease, settlement: Settlement): void {
    queue.push({ id, token, ...settlement })
    if (!flushing) schedule()
  }

  return {
    add,
    /** Announces that no attempt is running, so that few settlements will follow. */
    hurry(): void {
      if (queue.length >= IDLE_BATCH && !flushing) void flush()
    },
    /** Adds a settlement once its attempt is recorded. */
    async addAfter(recorded: Promise<void>, lease: Lease, settlement: Settlement): Promise<void> {
      expected++
      await recorded
      expected--
      add(lease, settlement)
    },
    /**
     * Stores the remaining settlements, also those whose attempts are not recorded yet. Resolves
     * when they are stored, or at `untilMs` of `performance.now()`.
     */
    async drain(untilMs: number): Promise<void> {
      deadlineMs = untilMs
      while (performance.now() < deadlineMs) {
        if (queue.length > 0 || flushing) await flush()
        else if (expected > 0) await sleep(EXPECTED_MS)
        else break
      }
      clearTimeout(timer)
    },
  }
}

/** Stores settlements. Returns the ids whose lease the caller has lost; they are unchanged. */
export async function settleDeliveries(sql: Sql, settled: readonly Settled[]): Promise<string[]> {
  const column = (value: (one: Settled) => string | number | null) => toArray(settled.map(value))
  const rows = await sql<{ id: string }[]>`
    select store_settlements(
      ${column(({ id }) => id)}::uuid[], ${column(({ token }) => token)}::uuid[],
      ${column(({ state }) => state)}::text[], ${column(({ attempts }) => attempts)}::int[],
      ${column(({ delayMs }) => delayMs)}::float8[], ${column(({ reason }) => reason)}::text[],
      ${column(({ latencyMs }) => latencyMs)}::bigint[]
    ) as id
  `
  return rows.map(({ id }) => id)
}

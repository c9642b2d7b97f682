import { setTimeout as sleep } from 'node:timers/promises'
import { toReason } from '../../base/errors.ts'
import { limitLines, logger } from '../../base/log.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import { isUnavailable, LOCK_TIMEOUT, sqlState, type Queryable } from '../../database/sql.ts'
import type { Lease } from './delivery-kind.ts'
import type { Settlement } from './settlement.ts'

const MAX_BATCH = 500
/** How long settlements are collected. */
const COLLECT_MS = 50
/** The pause before settlements are stored again that could not be stored. */
const HOLD_MS = 150
/** How often a drain looks whether the expected settlements were added. */
const EXPECTED_MS = 5

const log = logger('outbox')
// By state, because a reason can name a row.
const warnOfTry = limitLines<{ reason: string; deliveries: number }>((state, tries, details) =>
  log.warning('Outcomes of deliveries could not be stored, and are stored again: {reason}', {
    ...details,
    state,
    tries,
  }),
)
const reportRefused = limitLines<{ reason: string; id: string }>((state, deliveries, details) =>
  log.error('The outcome of a delivery cannot be stored: {reason}', {
    ...details,
    state,
    deliveries,
  }),
)

type Settled = Lease & Settlement

interface SettlerOptions {
  pool: Pool
  /** Called with a stored batch, and with the ids whose lease was lost. */
  onSettled(batch: readonly Lease[], lost: ReadonlySet<string>): void
}

/**
 * Creates a settler. It stores settlements in batches: every 50 ms, or as soon as there are 500.
 * Those that cannot be stored now are stored with a later batch.
 */
export function createSettler({ pool, onSettled }: SettlerOptions) {
  let queue: Settled[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined
  let deadlineMs = Infinity
  /** The number of settlements that are added later. */
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
    if (flushing) return
    if (queue.length >= MAX_BATCH) void flush()
    else timer ??= setTimeout(() => void flush(), COLLECT_MS)
  }

  async function run(): Promise<void> {
    do await settle(queue.splice(0, MAX_BATCH))
    while (queue.length >= MAX_BATCH)
  }

  /**
   * Stores a batch. If Postgres refuses it, or something but a delivery is locked, it stores each
   * of them alone. A delivery that is not stored by the deadline waits for the end of its lease.
   */
  async function settle(batch: readonly Settled[], isLast = false): Promise<void> {
    if (batch.length === 0 || performance.now() > deadlineMs) return
    try {
      const { locked, lost } = await pool.run(sql => settleDeliveries(sql, batch))
      onSettled(
        batch.filter(({ id }) => !locked.has(id)),
        lost,
      )
      hold(batch.filter(({ id }) => locked.has(id)))
    } catch (error) {
      const reason = toReason(error)
      const state = sqlState(error)
      const isTemporary = isUnavailable(error)
      if (isTemporary || !isLast) warnOfTry(state ?? reason, { reason, deliveries: batch.length })
      // One by one, a slow database would need longer than for all at once.
      if (isTemporary && (isLast || state !== LOCK_TIMEOUT)) return hold(batch)
      if (!isLast) {
        for (const one of batch) await settle([one], true)
        return
      }
      // It is claimed again when its lease ends, and given up after 10 claims.
      for (const { id } of batch) reportRefused(state ?? reason, { reason, id })
      onSettled(batch, new Set(batch.map(({ id }) => id)))
    }
  }

  function hold(batch: readonly Settled[]): void {
    if (batch.length > 0) void addAfter(sleep(HOLD_MS), batch)
  }

  async function addAfter(ready: Promise<unknown>, batch: readonly Settled[]): Promise<void> {
    expected += batch.length
    await ready
    expected -= batch.length
    queue.push(...batch)
    schedule()
  }

  return {
    /** Adds a settlement, at once or when its attempt is recorded. */
    add({ id, token }: Lease, settlement: Settlement, recorded?: Promise<void>): void {
      const settled = { id, token, ...settlement }
      if (recorded) return void addAfter(recorded, [settled])
      queue.push(settled)
      schedule()
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

/**
 * Stores settlements. Returns the ids of the deliveries that stay unchanged: those that another
 * transaction locks, and those whose lease the caller has lost.
 */
export async function settleDeliveries(
  sql: Queryable,
  settled: readonly Settled[],
): Promise<{ locked: Set<string>; lost: Set<string> }> {
  const column = (value: (one: Settled) => string | number | null) => toArray(settled.map(value))
  const rows = await sql<{ id: string; is_locked: boolean }[]>`
    select id, is_locked
    from settle_free_deliveries(
      ids => ${column(({ id }) => id)}::uuid[],
      tokens => ${column(({ token }) => token)}::uuid[],
      states => ${column(({ state }) => state)}::text[],
      made_attempts => ${column(({ attempts }) => attempts)}::int[],
      delays_ms => ${column(({ delayMs }) => delayMs)}::float8[],
      reasons => ${column(({ reason }) => reason)}::text[],
      latencies_ms => ${column(({ latencyMs }) => latencyMs)}::bigint[]
    )
  `
  const idsOf = (isLocked: boolean) =>
    new Set(rows.filter(row => row.is_locked === isLocked).map(({ id }) => id))
  return { locked: idsOf(true), lost: idsOf(false) }
}

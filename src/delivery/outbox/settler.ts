import { setTimeout as sleep } from 'node:timers/promises'
import { toReason } from '../../base/errors.ts'
import { limitLines, logger } from '../../base/log.ts'
import { toArray } from '../../database/arrays.ts'
import { runBriefly, type Pool } from '../../database/pool.ts'
import {
  isUnavailable,
  LOCK_TIMEOUT,
  QUERY_CANCELED,
  sqlState,
  type Queryable,
} from '../../database/sql.ts'
import type { Lease } from './delivery-kind.ts'
import type { Settlement } from './settlement.ts'

const MAX_BATCH = 500
/** With this many settlements, a worker without attempts waits for no more of them. */
const IDLE_BATCH = 50
const MAX_DELAY_MS = 50
const MIN_PAUSE_MS = 50
const MAX_PAUSE_MS = 1_000
/** The longest pause before a delivery that was locked is tried again. The try waits, too. */
const MAX_HELD_MS = 100
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

/** Why Postgres did not store a batch. */
interface Failure {
  state: string
  reason: string
  /** True if a lock or a time-out ended the statement. */
  isLocked: boolean
}

interface SettlerOptions {
  pool: Pool
  /** Called with a stored batch, and with the ids whose lease was lost. */
  onSettled(batch: readonly Lease[], lost: ReadonlySet<string>): void
}

/**
 * Creates a settler. It stores settlements in batches: every 50 ms, or as soon as there are 500.
 * Those that meet a lock are held back and stored apart, so that the others do not wait for them.
 */
export function createSettler({ pool, onSettled }: SettlerOptions) {
  let queue: Settled[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing: Promise<void> | undefined
  const held = new Set<Settled>()
  let retrying: Promise<void> | undefined
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
    // While a lock is known, the others wait for it only briefly.
    do await settle(queue.splice(0, MAX_BATCH), held.size > 0)
    while (queue.length >= MAX_BATCH)
  }

  /** Stores the settlements that are held back, with pauses, until none is left. */
  async function retry(): Promise<void> {
    let pauseMs = MIN_PAUSE_MS
    do {
      await sleep(pauseMs)
      await settle([...held].slice(0, MAX_BATCH), false)
      pauseMs = Math.min(MAX_HELD_MS, pauseMs * 2)
    } while (held.size > 0 && performance.now() + pauseMs < deadlineMs)
    retrying = undefined
  }

  function hold(one: Settled): void {
    // The next batch begins with those that have waited longer.
    held.delete(one)
    held.add(one)
    retrying ??= retry()
  }

  /**
   * Stores a batch. If it meets a locked delivery, it stores the others, and holds that one back.
   * It stores one by one what Postgres refuses even so. A lease that ends meanwhile keeps its
   * delivery from being changed.
   */
  async function settle(batch: Settled[], isBrief: boolean): Promise<void> {
    let refusal = batch.length > 0 ? await store(batch, isBrief) : undefined
    if (refusal?.state === LOCK_TIMEOUT && batch.length > 1) refusal = await storeFree(batch)
    // One by one, a slow database would need longer than for all at once.
    if (refusal?.state === QUERY_CANCELED) for (const one of batch) hold(one)
    if (!refusal || refusal.state === QUERY_CANCELED) return
    for (const one of batch) {
      if (performance.now() > deadlineMs) return
      // A refusal can be over at the second try, also that of a single one.
      const isTriedAgain = batch.length > 1 || !refusal.isLocked
      const failure = isTriedAgain ? await store([one], true) : refusal
      if (failure?.isLocked) hold(one)
      if (!failure || failure.isLocked) continue
      // It is claimed again when its lease ends, and given up after 10 claims.
      reportRefused(failure.state, { reason: failure.reason, id: one.id })
      finish([one], new Set([one.id]))
    }
  }

  const store = (batch: Settled[], isBrief: boolean) =>
    tryUntilStored(batch, isBrief, async sql => [batch, await settleDeliveries(sql, batch)])

  /** Stores those of a batch that nobody locks. */
  const storeFree = (batch: Settled[]) =>
    tryUntilStored(batch, true, async sql => {
      const free = await lockFree(sql, batch)
      const stored = batch.filter(({ id }) => free.has(id))
      return [stored, stored.length > 0 ? await settleDeliveries(sql, stored) : []]
    })

  /**
   * Stores a batch by `work`, and retries while the database is unavailable. `work` returns what it
   * has stored, and the ids whose lease was lost. The others are held back. Returns why Postgres
   * did not store it, if another try of the same batch is in vain.
   */
  async function tryUntilStored(
    batch: Settled[],
    isBrief: boolean,
    work: (sql: Queryable) => Promise<[Settled[], string[]]>,
  ): Promise<Failure | undefined> {
    for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      try {
        const [stored, lost] = await (isBrief ? runBriefly(pool, work) : pool.run(work))
        finish(stored, new Set(lost))
        const done = new Set(stored)
        for (const one of batch) if (!done.has(one)) hold(one)
        return undefined
      } catch (error) {
        const reason = toReason(error)
        const state = sqlState(error)
        const isLocked = state === LOCK_TIMEOUT || state === QUERY_CANCELED
        const isRefused = !isUnavailable(error)
        if (!isRefused || batch.length > 1)
          warnOfTry(state ?? reason, { reason, deliveries: batch.length })
        if (state !== undefined && (isLocked || isRefused)) return { state, reason, isLocked }
        if (performance.now() + pauseMs > deadlineMs) return undefined
        await sleep(pauseMs)
      }
    }
  }

  function finish(batch: readonly Settled[], lost: ReadonlySet<string>): void {
    for (const one of batch) held.delete(one)
    onSettled(batch, lost)
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
        else if (retrying) await retrying
        else if (expected > 0) await sleep(EXPECTED_MS)
        else break
      }
      clearTimeout(timer)
    },
  }
}

/**
 * Stores settlements. Returns the ids whose lease the caller has lost; they are unchanged.
 */
export async function settleDeliveries(
  sql: Queryable,
  settled: readonly Settled[],
): Promise<string[]> {
  const column = (value: (one: Settled) => string | number | null) => toArray(settled.map(value))
  const rows = await sql<{ id: string }[]>`
    select store_settlements(
      ids => ${column(({ id }) => id)}::uuid[],
      tokens => ${column(({ token }) => token)}::uuid[],
      states => ${column(({ state }) => state)}::text[],
      made_attempts => ${column(({ attempts }) => attempts)}::int[],
      delays_ms => ${column(({ delayMs }) => delayMs)}::float8[],
      reasons => ${column(({ reason }) => reason)}::text[],
      latencies_ms => ${column(({ latencyMs }) => latencyMs)}::bigint[]
    ) as id
  `
  return rows.map(({ id }) => id)
}

/** Locks the deliveries of a batch that nobody else locks. Returns their ids. */
async function lockFree(sql: Queryable, batch: readonly Settled[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    select o.id
    from outbox o
    where o.id = any(${toArray(batch.map(({ id }) => id))}::uuid[])
    order by o.id
    for update skip locked
  `
  return new Set(rows.map(({ id }) => id))
}

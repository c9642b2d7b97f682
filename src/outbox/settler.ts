import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../db/pool.ts'
import { isUnavailable, sqlState } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { settleJobs, type Held } from './settle.ts'
import type { Settlement } from './settlement.ts'

const MAX_BATCH = 500
const MAX_DELAY_MS = 50
const MAX_PAUSE_MS = 1_000

const log = logger('outbox')

/** Writes down what becomes of jobs, in batches of 500 or whatever 50 ms bring. */
export interface Settler {
  add(job: Held & Settlement): void
  /** How many are not written down. */
  readonly waiting: number
  /** Writes down what there is, and resolves when that is done or `deadlineMs` (of performance.now) has passed. */
  drain(deadlineMs: number): Promise<void>
}

export interface SettlerOptions {
  pool: Pool
  /** Told which jobs were written down; of those that are not among `kept` somebody else has the lease. */
  onSettled(jobs: readonly Held[], kept: ReadonlySet<string>): void
}

export function createSettler({ pool, onSettled }: SettlerOptions): Settler {
  let queue: (Held & Settlement)[] = []
  let inFlight = 0
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
    do {
      const batch = queue.splice(0, MAX_BATCH)
      inFlight = batch.length
      await settle(batch)
      inFlight = 0
    } while (queue.length >= MAX_BATCH)
  }

  /** Tries until the database takes it: meanwhile leases may end, and then it takes nothing of theirs. */
  async function settle(batch: (Held & Settlement)[]): Promise<void> {
    for (let pauseMs = 50; batch.length > 0; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      try {
        onSettled(batch, new Set(await pool.run(sql => settleJobs(sql, batch))))
        return
      } catch (error) {
        log.warning('Outcomes of deliveries wait to be written down: {reason}', {
          jobs: batch.length,
          reason: toReason(error),
        })
        if (sqlState(error) !== undefined && !isUnavailable(error)) return settleSingly(batch)
        if (performance.now() + pauseMs > deadlineMs) return
        await sleep(pauseMs)
      }
    }
  }

  /** Postgres refuses one of them: that one is taken again when its lease has ended, and given up after some times. */
  async function settleSingly(batch: (Held & Settlement)[]): Promise<void> {
    for (const job of batch) {
      try {
        onSettled([job], new Set(await pool.run(sql => settleJobs(sql, [job]))))
      } catch (error) {
        log.error('The outcome of a delivery cannot be written down: {reason}', {
          id: job.id,
          reason: toReason(error),
        })
        onSettled([job], new Set())
      }
    }
  }

  return {
    add(job) {
      queue.push(job)
      if (!flushing) schedule()
    },
    get waiting() {
      return queue.length + inFlight
    },
    async drain(untilMs) {
      deadlineMs = untilMs
      while ((queue.length > 0 || flushing) && performance.now() < deadlineMs) await flush()
      clearTimeout(timer)
    },
  }
}

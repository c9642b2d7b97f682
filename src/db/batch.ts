import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../errors.ts'
import { createBatchQueue, type BatchQueueOptions, type QueuedJob } from './batch-queue.ts'
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  LOCK_TIMEOUT,
  UNIQUE_VIOLATION,
  isUnavailable,
  sqlState,
} from './sql.ts'

const PAUSE_MS = 1_000

export interface BatcherOptions<Job, Row, Result> extends BatchQueueOptions {
  /** Runs all jobs in one round trip. Resolves to one row per job, in the order of the jobs. */
  run(jobs: Job[]): Promise<Row[]>
  /** Turns a job's row into the caller's result. */
  toResult(row: Row, job: Job): Result
  /** The group that a job locks. A group that is locked must not delay the others in a batch. */
  toGroup?(job: Job): string
  /** The approximate size of a job's request, in bytes. */
  toBytes?(job: Job): number
  /** Called with the number of jobs of each batch. */
  observe?(jobs: number): void
  /** How long each batch collects jobs, for callers that can wait. */
  collectMs?: number
}

export interface Batcher<Job, Result> {
  /** Resolves when the job's batch has committed. Rejects with `unavailable` when overloaded. */
  add(job: Job): Promise<Result>
  readonly waiting: number
  /** Resolves when nothing is waiting or running. */
  drain(): Promise<void>
}

interface Waiting<Job, Result> extends QueuedJob {
  job: Job
  resolve(result: Result): void
  reject(error: unknown): void
}

/** A batch in flight. `outcome` never rejects. */
interface Running<Job, Row, Result> {
  batch: Waiting<Job, Result>[]
  outcome: Promise<{ rows: Row[] } | { error: unknown }>
}

/**
 * Groups concurrent jobs into batches. While one batch is in flight, the next one collects the new
 * jobs. Without `collectMs` there is no timer: a lone job is not delayed, and batches grow with the
 * load.
 */
export function createBatcher<Job, Row, Result>(
  options: BatcherOptions<Job, Row, Result>,
): Batcher<Job, Result> {
  const queue = createBatchQueue<Waiting<Job, Result>>(options)
  const { collectMs } = options
  let flushing: Promise<void> | undefined
  // Groups that were locked. Their jobs are rejected until this time, in ms of `performance.now`.
  const paused = new Map<string, number>()

  function start(batch: Waiting<Job, Result>[]): Running<Job, Row, Result> {
    const run = async () => options.run(batch.map(({ job }) => job))
    const outcome = run().then(
      rows => ({ rows }),
      (error: unknown) => ({ error }),
    )
    return { batch, outcome }
  }

  function startNext(): Running<Job, Row, Result> | undefined {
    if (queue.waiting === 0) return undefined
    const batch = queue.take()
    options.observe?.(batch.length)
    return start(batch)
  }

  /** Jobs that arrive in the same turn of the event loop share the first batch. */
  function collect(): Promise<void> {
    if (collectMs !== undefined) return sleep(collectMs)
    return new Promise(resolve => setImmediate(resolve))
  }

  async function flush(): Promise<void> {
    await collect()
    for (let running = startNext(); running;) {
      const outcome = await running.outcome
      if ('error' in outcome) {
        await recover(running.batch, outcome.error)
        running = startNext()
      } else {
        // Start before writing the responses, so that the database works meanwhile.
        const next = collectMs === undefined ? startNext() : undefined
        deliver(running.batch, outcome.rows)
        if (collectMs !== undefined) await collect()
        // Nothing is awaited between an empty queue and the end, so that no job is added meanwhile.
        running = next ?? startNext()
      }
    }
    flushing = undefined
  }

  function deliver(batch: Waiting<Job, Result>[], rows: Row[]): void {
    batch.forEach(({ job, resolve, reject }, index) => {
      try {
        // `run` returns one row per job.
        resolve(options.toResult(rows[index] as Row, job))
      } catch (error) {
        reject(error)
      }
    })
  }

  /** Retries the parts of a failed batch that can be retried, and rejects the others. */
  async function recover(
    batch: Waiting<Job, Result>[],
    error: unknown,
    retries = 1,
  ): Promise<void> {
    const parts = splitForRetry(batch, error, retries)
    if (parts.length === 0) refuse(batch, error)
    for (const part of parts) {
      const again = await start(part).outcome
      if ('rows' in again) deliver(part, again.rows)
      else await recover(part, again.error, part === batch ? retries - 1 : retries)
    }
  }

  /**
   * Splits a failed batch for the retry. A conflict retries the whole batch, a locked group retries
   * by group, and any other error retries by job. Returns no parts when a retry is not possible.
   */
  function splitForRetry(
    batch: Waiting<Job, Result>[],
    error: unknown,
    retries: number,
  ): Waiting<Job, Result>[][] {
    const state = sqlState(error)
    if (state === LOCK_TIMEOUT) {
      const groups = [...Map.groupBy(batch, ({ group }) => group).values()]
      return groups.length > 1 ? groups : []
    }
    // Without a reply from Postgres the outcome is unknown. Only the caller can retry, with its
    // key.
    if (state === undefined || isUnavailable(error)) return []
    if (retries > 0 && isConflict(state)) return [batch]
    return batch.length > 1 ? batch.map(one => [one]) : []
  }

  /** Rejects a batch. After a lock timeout the batch has one group, which is paused. */
  function refuse(batch: Waiting<Job, Result>[], error: unknown): void {
    const group = batch[0]?.group
    const isLocked = !!group && sqlState(error) === LOCK_TIMEOUT
    if (isLocked) paused.set(group, performance.now() + PAUSE_MS)
    for (const { reject } of batch) reject(isLocked ? busy() : error)
  }

  function isPaused(group: string): boolean {
    if (paused.size === 0) return false
    const nowMs = performance.now()
    for (const [group, untilMs] of paused) if (untilMs <= nowMs) paused.delete(group)
    return paused.has(group)
  }

  return {
    add(job) {
      const group = options.toGroup?.(job) ?? ''
      if (isPaused(group)) return Promise.reject(busy())
      return new Promise<Result>((resolve, reject) => {
        const one = { job, group, bytes: options.toBytes?.(job) ?? 0, resolve, reject }
        if (!queue.add(one)) {
          return reject(overloaded())
        }
        flushing ??= flush()
      })
    },
    get waiting() {
      return queue.waiting
    },
    async drain() {
      while (flushing) await flushing
    },
  }
}

/** Another transaction committed first. A retry of the same batch sees its rows. */
function isConflict(state: string): boolean {
  return state === UNIQUE_VIOLATION || state === DEADLOCK || state === FOREIGN_KEY_VIOLATION
}

/** Too many jobs wait. */
export function overloaded(): Fault {
  return new Fault('unavailable', 'The server is overloaded. Try again shortly.')
}

/** Another transaction holds the lock that a job needs. */
function busy(): Fault {
  return new Fault('unavailable', 'This project is busy. Try again shortly.')
}

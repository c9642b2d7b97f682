import { Fault } from '../errors.ts'
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  LOCK_TIMEOUT,
  UNIQUE_VIOLATION,
  isUnavailable,
  sqlState,
} from './sql.ts'

const MAX_BATCH_BYTES = 2 * 1024 * 1024
const MAX_WAITING_BYTES = 64 * 1024 * 1024
const PAUSE_MS = 1_000

export interface BatcherOptions<Job, Row, Result> {
  /** Does all jobs in one round trip; rows in the order of the jobs. */
  run(jobs: Job[]): Promise<Row[]>
  /** Turns a job's row into the caller's result. */
  toResult(row: Row, job: Job): Result
  /** The group that a job locks; a locked group must not delay the other jobs of a batch. */
  toGroup?(job: Job): string
  /** About how many bytes a job sends. */
  toBytes?(job: Job): number
  maxJobs: number
  /** Beyond this many waiting jobs `add` refuses. */
  maxWaiting: number
  /** Called with the number of jobs of each batch. */
  observe?(jobs: number): void
}

export interface Batcher<Job, Result> {
  /** Resolves when the job's batch has committed. */
  add(job: Job): Promise<Result>
  readonly waiting: number
  /** Resolves when nothing is waiting or running. */
  drain(): Promise<void>
}

interface Waiting<Job, Result> {
  job: Job
  bytes: number
  resolve(result: Result): void
  reject(error: unknown): void
}

/** A batch and what became of it; `outcome` never rejects. */
interface Running<Job, Row, Result> {
  batch: Waiting<Job, Result>[]
  outcome: Promise<{ rows: Row[] } | { error: unknown }>
}

/**
 * Does work together that arrives together: one batch is in flight, the next takes what has piled up meanwhile. There
 * is no timer, so a lone job is not delayed and a crowd gets bigger batches.
 */
export function createBatcher<Job, Row, Result>(
  options: BatcherOptions<Job, Row, Result>,
): Batcher<Job, Result> {
  let queue: Waiting<Job, Result>[] = []
  let queuedBytes = 0
  let flushing: Promise<void> | undefined
  // Groups that were locked, and until when (ms of performance.now) their jobs are refused without asking again.
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
    if (queue.length === 0) return undefined
    let size = 0
    let bytes = 0
    while (size < queue.length && size < options.maxJobs) {
      const next = queue[size]?.bytes ?? 0
      if (size > 0 && bytes + next > MAX_BATCH_BYTES) break
      bytes += next
      size++
    }
    const batch = queue.slice(0, size)
    queue = queue.slice(size)
    queuedBytes -= bytes
    options.observe?.(batch.length)
    return start(batch)
  }

  async function flush(): Promise<void> {
    // One turn of the event loop: requests that were read together share the first batch, too.
    await new Promise<void>(resolve => setImmediate(resolve))
    for (let running = startNext(); running;) {
      const outcome = await running.outcome
      if ('error' in outcome) {
        await recover(running.batch, outcome.error)
        running = startNext()
      } else {
        // Before the answers are written, so that the database has work while they are.
        const next = startNext()
        deliver(running.batch, outcome.rows)
        running = next
      }
    }
    flushing = undefined
  }

  function deliver(batch: Waiting<Job, Result>[], rows: Row[]): void {
    batch.forEach(({ job, resolve, reject }, index) => {
      try {
        // `run` promises a row for each job.
        resolve(options.toResult(rows[index] as Row, job))
      } catch (error) {
        reject(error)
      }
    })
  }

  /** Retries the parts of a failed batch that may be retried, and rejects the rest. */
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

  /** Splits a failed batch for the retry: the whole batch after a collision, else by group or by job. */
  function splitForRetry(
    batch: Waiting<Job, Result>[],
    error: unknown,
    retries: number,
  ): Waiting<Job, Result>[][] {
    const state = sqlState(error)
    if (state === LOCK_TIMEOUT) {
      const groups = [...Map.groupBy(batch, ({ job }) => options.toGroup?.(job)).values()]
      return groups.length > 1 ? groups : []
    }
    // Without an answer of Postgres the outcome is unknown: only the caller may try again, with its key.
    if (state === undefined || isUnavailable(error)) return []
    if (retries > 0 && isConflict(state)) return [batch]
    return batch.length > 1 ? batch.map(one => [one]) : []
  }

  /** Rejects a batch; one that met a lock is of one group, which is then left alone for a while. */
  function refuse(batch: Waiting<Job, Result>[], error: unknown): void {
    const group = batch[0] && options.toGroup?.(batch[0].job)
    const isLocked = group !== undefined && sqlState(error) === LOCK_TIMEOUT
    if (isLocked) paused.set(group, performance.now() + PAUSE_MS)
    for (const { reject } of batch) reject(isLocked ? busy() : error)
  }

  function isPaused(job: Job): boolean {
    if (paused.size === 0) return false
    const nowMs = performance.now()
    for (const [group, untilMs] of paused) if (untilMs <= nowMs) paused.delete(group)
    return paused.has(options.toGroup?.(job) ?? '')
  }

  return {
    add(job) {
      if (isPaused(job)) return Promise.reject(busy())
      const bytes = options.toBytes?.(job) ?? 0
      if (queue.length >= options.maxWaiting || queuedBytes + bytes > MAX_WAITING_BYTES) {
        return Promise.reject(
          new Fault('unavailable', 'The server is overloaded, try again shortly'),
        )
      }
      return new Promise<Result>((resolve, reject) => {
        queue.push({ job, bytes, resolve, reject })
        queuedBytes += bytes
        flushing ??= flush()
      })
    },
    get waiting() {
      return queue.length
    },
    async drain() {
      while (flushing) await flushing
    },
  }
}

/** Another transaction was faster: the same batch sees its rows when tried again. */
function isConflict(state: string): boolean {
  return state === UNIQUE_VIOLATION || state === DEADLOCK || state === FOREIGN_KEY_VIOLATION
}

/** Somebody else holds what a job must lock. */
function busy(): Fault {
  return new Fault('unavailable', 'The project is written to by somebody else, try again shortly')
}

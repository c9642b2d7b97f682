import { Fault } from '../errors.ts'
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  LOCK_TIMEOUT,
  UNIQUE_VIOLATION,
  isUnavailable,
  sqlState,
} from './sql.ts'

/** Small enough that a batch of large jobs takes Postgres some 20 ms. */
const MAX_BATCH_BYTES = 512 * 1024
const MAX_WAITING_BYTES = 64 * 1024 * 1024
const PAUSE_MS = 1_000

export interface BatcherOptions<Job, Row, Result> {
  /** Runs all jobs in one round trip. Resolves to one row per job, in the order of the jobs. */
  run(jobs: Job[]): Promise<Row[]>
  /** Turns a job's row into the caller's result. */
  toResult(row: Row, job: Job): Result
  /** The group that a job locks. A group that is locked must not delay the others in a batch. */
  toGroup?(job: Job): string
  /** The approximate size of a job's request, in bytes. */
  toBytes?(job: Job): number
  maxJobs: number
  /** `add` rejects while this many jobs are waiting. */
  maxWaiting: number
  /** The share of the waiting jobs and bytes that one group may have; 1 by default. */
  groupShare?: number
  /** Called with the number of jobs of each batch. */
  observe?(jobs: number): void
}

export interface Batcher<Job, Result> {
  /** Resolves when the job's batch has committed. Rejects with `unavailable` when overloaded. */
  add(job: Job): Promise<Result>
  readonly waiting: number
  /** Resolves when nothing is waiting or running. */
  drain(): Promise<void>
}

interface Waiting<Job, Result> {
  job: Job
  group: string
  bytes: number
  resolve(result: Result): void
  reject(error: unknown): void
}

/** The waiting jobs of a group. */
interface GroupQueue<Job, Result> {
  jobs: Waiting<Job, Result>[]
  bytes: number
}

/** A batch in flight. `outcome` never rejects. */
interface Running<Job, Row, Result> {
  batch: Waiting<Job, Result>[]
  outcome: Promise<{ rows: Row[] } | { error: unknown }>
}

/**
 * Groups concurrent jobs into batches. While one batch is in flight, the next one collects the new
 * jobs. There is no timer: a lone job is not delayed, and batches grow with the load.
 */
export function createBatcher<Job, Row, Result>(
  options: BatcherOptions<Job, Row, Result>,
): Batcher<Job, Result> {
  // The waiting jobs of each group. Groups take turns, so one with large jobs delays no other.
  const queues = new Map<string, GroupQueue<Job, Result>>()
  let waiting = 0
  let queuedBytes = 0
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

  /** Takes one job of each group in turn, up to the limits of a batch. */
  function takeBatch(): Waiting<Job, Result>[] {
    const batch: Waiting<Job, Result>[] = []
    let bytes = 0
    for (let nth = 0; batch.length < waiting; nth++) {
      for (const queue of queues.values()) {
        const next = queue.jobs[nth]
        if (!next) continue
        const isFull = batch.length === options.maxJobs || bytes + next.bytes > MAX_BATCH_BYTES
        if (isFull && batch.length > 0) return remove(batch)
        batch.push(next)
        bytes += next.bytes
      }
    }
    return remove(batch)
  }

  /** Removes a batch from the queues. Its groups go behind the others. */
  function remove(batch: Waiting<Job, Result>[]): Waiting<Job, Result>[] {
    for (const [group, taken] of Map.groupBy(batch, one => one.group)) {
      const queue = queues.get(group)
      const bytes = taken.reduce((sum, one) => sum + one.bytes, 0)
      queuedBytes -= bytes
      queues.delete(group)
      if (!queue || queue.jobs.length === taken.length) continue
      queues.set(group, { jobs: queue.jobs.slice(taken.length), bytes: queue.bytes - bytes })
    }
    waiting -= batch.length
    return batch
  }

  function startNext(): Running<Job, Row, Result> | undefined {
    if (waiting === 0) return undefined
    const batch = takeBatch()
    options.observe?.(batch.length)
    return start(batch)
  }

  async function flush(): Promise<void> {
    // Requests that arrive in the same turn of the event loop share the first batch.
    await new Promise<void>(resolve => setImmediate(resolve))
    for (let running = startNext(); running;) {
      const outcome = await running.outcome
      if ('error' in outcome) {
        await recover(running.batch, outcome.error)
        running = startNext()
      } else {
        // Start before writing the responses, so that the database works meanwhile.
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

  /** Returns whether a job of this size has no room, or would exceed the share of its group. */
  function isFull({ jobs, bytes: groupBytes }: GroupQueue<Job, Result>, bytes: number): boolean {
    const { groupShare: share = 1 } = options
    return (
      waiting >= options.maxWaiting ||
      queuedBytes + bytes > MAX_WAITING_BYTES ||
      jobs.length >= share * options.maxWaiting ||
      groupBytes + bytes > share * MAX_WAITING_BYTES
    )
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
      const bytes = options.toBytes?.(job) ?? 0
      const queue = queues.get(group) ?? { jobs: [], bytes: 0 }
      if (isFull(queue, bytes)) {
        return Promise.reject(
          new Fault('unavailable', 'The server is overloaded. Try again shortly.'),
        )
      }
      return new Promise<Result>((resolve, reject) => {
        queue.jobs.push({ job, group, bytes, resolve, reject })
        queue.bytes += bytes
        queues.set(group, queue)
        waiting++
        queuedBytes += bytes
        flushing ??= flush()
      })
    },
    get waiting() {
      return waiting
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

/** Another transaction holds the lock that a job needs. */
function busy(): Fault {
  return new Fault('unavailable', 'This project is busy. Try again shortly.')
}

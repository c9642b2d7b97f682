import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../base/errors.ts'
import { createBatchQueue, type BatchQueueOptions, type QueuedJob } from './batch-queue.ts'
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  LOCK_TIMEOUT,
  QUERY_CANCELED,
  SERIALIZATION_FAILURE,
  UNIQUE_VIOLATION,
  isTemporary,
  sqlState,
} from './sql.ts'

const PAUSE_MS = 1_000
/** Groups that were locked are forgotten this long after their pause. */
const FORGET_MS = 60_000
/** Another transaction committed first. A retry of the same batch sees its rows. */
const CONFLICTS = [UNIQUE_VIOLATION, FOREIGN_KEY_VIOLATION, DEADLOCK, SERIALIZATION_FAILURE]
/** After so many statement time-outs in a row, the database is slow, and not one group. */
const MAX_SLOW_PARTS = 2

export interface BatcherOptions<Job, Row, Result> extends BatchQueueOptions {
  /**
   * Runs all jobs in one round trip. Resolves to one row per job, in the order of the jobs. With
   * `isBrief`, locks and statements get only a short time, because others wait behind this batch.
   */
  run(jobs: Job[], isBrief: boolean): Promise<Row[]>
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
  /** Resolves when the job's batch has committed. */
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
interface Running<Job, Row, Result> extends Part<Job, Result> {
  outcome: Promise<{ rows: Row[] } | { error: unknown }>
}

/** A batch, or a part of one that is retried. */
interface Part<Job, Result> {
  batch: Waiting<Job, Result>[]
  isBrief: boolean
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
  const locked = createLockedGroups()

  function start({ batch, isBrief }: Part<Job, Result>): Running<Job, Row, Result> {
    const jobs = batch.map(({ job }) => job)
    const outcome = options.run(jobs, isBrief).then(
      rows => ({ rows }),
      (error: unknown) => ({ error }),
    )
    return { batch, isBrief, outcome }
  }

  function startNext(): Running<Job, Row, Result> | undefined {
    if (queue.waiting === 0) return undefined
    const batch = queue.take()
    options.observe?.(batch.length)
    return start({
      batch,
      isBrief: batch.some(({ group }) => locked.has(group)),
    })
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
        await recover(running, outcome.error)
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
    for (const { group } of batch) locked.delete(group)
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
  async function recover(failed: Part<Job, Result>, error: unknown, retries = 1): Promise<void> {
    const parts = splitForRetry(failed, error, retries)
    if (parts.length === 0) refuse(failed.batch, error)
    let slow = 0
    for (const part of parts) {
      if (slow === MAX_SLOW_PARTS) {
        refuse(part.batch, error)
        continue
      }
      const again = await start(part).outcome
      slow = 'error' in again && sqlState(again.error) === QUERY_CANCELED ? slow + 1 : 0
      if ('rows' in again) deliver(part.batch, again.rows)
      else await recover(part, again.error, part.batch === failed.batch ? retries - 1 : retries)
    }
  }

  /**
   * Splits a failed batch for the retry. A conflict retries the whole batch, a time-out retries by
   * group, and any other error retries by job. Returns no parts when a retry is not possible.
   */
  function splitForRetry(
    { batch, isBrief }: Part<Job, Result>,
    error: unknown,
    retries: number,
  ): Part<Job, Result>[] {
    const state = sqlState(error)
    if (state === LOCK_TIMEOUT || state === QUERY_CANCELED) return splitByGroup(batch, isBrief)
    // Without a reply from Postgres the outcome is unknown. Only the caller can retry, with its
    // key.
    const isConflicting = state !== undefined && CONFLICTS.includes(state)
    if (!isConflicting && (state === undefined || isTemporary(error))) return []
    if (retries > 0 && isConflicting) return [{ batch, isBrief }]
    return batch.length > 1 ? batch.map(one => ({ batch: [one], isBrief })) : []
  }

  /**
   * Returns a brief part for each group, so that one that is locked does not delay the others
   * again. If the batch was brief because some of its groups were locked before, all other groups
   * are one part. It goes first, and is not brief. Returns no parts for a batch of one group.
   */
  function splitByGroup(batch: Waiting<Job, Result>[], isBrief: boolean): Part<Job, Result>[] {
    const groups = Map.groupBy(batch, ({ group }) => group)
    if (groups.size === 1) return []
    const others = isBrief ? batch.filter(({ group }) => !locked.has(group)) : []
    const parts = [...groups.values()]
      .filter(([one]) => !others.includes(one as Waiting<Job, Result>))
      .map(part => ({ batch: part, isBrief: true }))
    return others.length > 0 ? [{ batch: others, isBrief: false }, ...parts] : parts
  }

  /** Rejects a batch. After a lock timeout the batch has one group, which is paused. */
  function refuse(batch: Waiting<Job, Result>[], error: unknown): void {
    const group = batch[0]?.group
    const isLocked = !!group && sqlState(error) === LOCK_TIMEOUT
    if (isLocked) locked.add(group)
    for (const { reject } of batch) reject(isLocked ? busy() : error)
  }

  return {
    add(job) {
      const group = options.toGroup?.(job) ?? ''
      if (locked.isPaused(group)) return Promise.reject(busy())
      return new Promise<Result>((resolve, reject) => {
        const one = { job, group, bytes: options.toBytes?.(job) ?? 0, resolve, reject }
        queue.add(one)
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

/**
 * Remembers the groups that were locked lately. Jobs of a group are rejected during its pause.
 * Batches after the pause are brief until one succeeds.
 */
function createLockedGroups() {
  // The ends of the pauses, in ms of `performance.now`.
  const ends = new Map<string, number>()
  return {
    has: (group: string) => ends.has(group),
    isPaused: (group: string) => performance.now() < (ends.get(group) ?? 0),
    add(group: string): void {
      const nowMs = performance.now()
      for (const [other, endMs] of ends) if (endMs + FORGET_MS < nowMs) ends.delete(other)
      ends.set(group, nowMs + PAUSE_MS)
    },
    delete: (group: string) => ends.delete(group),
  }
}

/** Another transaction holds the lock that a job needs. */
function busy(): Fault {
  return new Fault('unavailable', 'This project is busy. Try again shortly.')
}

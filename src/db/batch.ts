import { Fault } from '../errors.ts'
import {
  DEADLOCK,
  FOREIGN_KEY_VIOLATION,
  UNIQUE_VIOLATION,
  isUnavailable,
  sqlState,
} from './sql.ts'

export interface BatcherOptions<Job, Result> {
  /** Does all jobs in one round trip; results in the order of the jobs. */
  run(jobs: Job[]): Promise<Result[]>
  maxJobs: number
  /** Beyond this many waiting jobs `add` refuses. */
  maxWaiting: number
  /** Told of every batch that ran. */
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
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Does work together that arrives together: one batch is in flight, the next takes what has piled up meanwhile.
 * There is no timer, so a lone job is not delayed and a crowd gets bigger batches.
 */
export function createBatcher<Job, Result>(
  options: BatcherOptions<Job, Result>,
): Batcher<Job, Result> {
  let queue: Waiting<Job, Result>[] = []
  let running: Promise<void> | undefined

  async function flush(): Promise<void> {
    // One turn of the event loop: requests that were read together share the first batch, too.
    await new Promise<void>(resolve => setImmediate(resolve))
    while (queue.length > 0) {
      const batch = queue.slice(0, options.maxJobs)
      queue = queue.slice(options.maxJobs)
      options.observe?.(batch.length)
      await settle(batch, options.run)
    }
    running = undefined
  }

  return {
    add(job) {
      if (queue.length >= options.maxWaiting) {
        return Promise.reject(
          new Fault('unavailable', 'The server is overloaded, try again shortly'),
        )
      }
      return new Promise<Result>((resolve, reject) => {
        queue.push({ job, resolve, reject })
        running ??= flush()
      })
    },
    get waiting() {
      return queue.length
    },
    async drain() {
      while (running) await running
    },
  }
}

async function settle<Job, Result>(
  batch: Waiting<Job, Result>[],
  run: (jobs: Job[]) => Promise<Result[]>,
  retries = 1,
): Promise<void> {
  try {
    const results = await run(batch.map(({ job }) => job))
    batch.forEach(({ resolve }, index) => resolve(results[index]!))
  } catch (error) {
    const state = sqlState(error)
    // Without an answer of Postgres the outcome is unknown: only the caller may try again, with its key.
    if (state === undefined || isUnavailable(error)) {
      for (const { reject } of batch) reject(error)
    } else if (retries > 0 && isCollision(state)) {
      await settle(batch, run, retries - 1)
    } else if (batch.length > 1) {
      for (const one of batch) await settle([one], run)
    } else {
      batch[0]?.reject(error)
    }
  }
}

/** Another transaction was faster: the same batch sees its rows when tried again. */
function isCollision(state: string): boolean {
  return state === UNIQUE_VIOLATION || state === DEADLOCK || state === FOREIGN_KEY_VIOLATION
}

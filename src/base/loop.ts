import { toReason } from './errors.ts'
import { pause } from './functions.ts'

/** Work that repeats in the background. */
export interface Loop {
  /** Aborts the signal of the rounds. Resolves after the current round and `last`. */
  stop(reason?: unknown): Promise<void>
}

export interface LoopOptions {
  /** The pause after a round, in milliseconds. */
  everyMs: number
  /** True if the first round begins at once, without a pause before it. */
  runsAtOnce?: boolean
  /** Does the work. It may resolve to a pause in place of `everyMs`. */
  round(signal: AbortSignal): Promise<number | void>
  /** Does the remaining work after the last round. */
  last?(): Promise<void>
  /** Logs why a round or `last` failed. The next round tries again. */
  onFailure(reason: string, error: unknown): void
}

/** Runs one round after the other until it is stopped. A loop does not keep the process alive. */
export function startLoop(options: LoopOptions): Loop {
  const { everyMs, runsAtOnce = false, round, last, onFailure } = options
  const stopping = new AbortController()
  const { signal } = stopping

  async function attempt<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work()
    } catch (error) {
      onFailure(toReason(error), error)
      return undefined
    }
  }

  async function run(): Promise<void> {
    if (!runsAtOnce) await pause(everyMs, signal)
    while (!signal.aborted) await pause((await attempt(() => round(signal))) ?? everyMs, signal)
    if (last) await attempt(last)
  }

  const running = run()
  return {
    stop(reason) {
      stopping.abort(reason)
      return running
    },
  }
}

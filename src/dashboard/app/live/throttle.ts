import type { Clock } from './clock.ts'

export interface Throttle {
  /** Runs the work now, or at the end of the current interval. Repeated calls cause one run. */
  trigger(): void
  /** Cancels a pending run. */
  stop(): void
  /** Runs pending work now. */
  flush(): void
}

/** Runs `work` at most once per interval. */
export function createThrottle(clock: Clock, intervalMs: number, work: () => void): Throttle {
  let last = -Infinity
  let cancel: (() => void) | undefined

  function run() {
    cancel = undefined
    last = clock.now()
    work()
  }

  return {
    trigger() {
      if (cancel) return
      const wait = last + intervalMs - clock.now()
      if (wait <= 0) run()
      // If the clock was set back, the wait must not exceed the interval.
      else cancel = clock.after(Math.min(wait, intervalMs), run)
    },
    stop() {
      cancel?.()
      cancel = undefined
    },
    flush() {
      if (!cancel) return
      cancel()
      run()
    },
  }
}

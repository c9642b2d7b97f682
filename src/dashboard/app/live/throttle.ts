import type { Clock } from './clock.ts'

export interface Throttle {
  /** Asks for a run: at once after a quiet time, else when the interval is over. Many wishes are one. */
  trigger(): void
  /** Calls off a run that is due. */
  stop(): void
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
      // A clock that was set back must not hold us up for hours.
      else cancel = clock.after(Math.min(wait, intervalMs), run)
    },
    stop() {
      cancel?.()
      cancel = undefined
    },
  }
}

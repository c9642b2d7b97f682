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

const ANNOUNCE_MS = 10_000

interface Announcer extends Pick<Throttle, 'stop'> {
  /** Adds `count` shown events; `newest` is the title of the newest. */
  add(count: number, newest: string): void
}

/** Announces new events to screen readers, at most every ten seconds. */
export function createAnnouncer(clock: Clock, say: (sentence: string) => void): Announcer {
  let sum = 0
  let latest = ''
  const speaking = createThrottle(clock, ANNOUNCE_MS, () => {
    say(
      sum === 1 ? `New event: ${latest}` : `${sum.toLocaleString()} new events. Newest: ${latest}`,
    )
    sum = 0
  })
  return {
    add(count, newest) {
      sum += count
      latest = newest
      speaking.trigger()
    },
    stop: speaking.stop,
  }
}

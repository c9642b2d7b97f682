import type { Clock } from '../../../src/dashboard/app/live/clock.ts'

/** A clock that tests move. */
export interface FakeClock extends Clock {
  /** Moves the clock, and runs due timers on the way, in order. */
  pass(ms: number): void
  /** The number of waiting timers. */
  readonly waiting: number
}

export function createFakeClock(startMs = 1_000_000): FakeClock {
  let nowMs = startMs
  let timers: { atMs: number; work: () => void }[] = []
  return {
    now: () => nowMs,
    after(ms, work) {
      const timer = { atMs: nowMs + ms, work }
      timers.push(timer)
      return () => {
        timers = timers.filter(other => other !== timer)
      }
    },
    pass(ms) {
      const endMs = nowMs + ms
      for (;;) {
        const [next] = timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
        if (!next) break
        timers = timers.filter(other => other !== next)
        nowMs = Math.max(nowMs, next.atMs)
        next.work()
      }
      nowMs = endMs
    },
    get waiting() {
      return timers.length
    },
  }
}

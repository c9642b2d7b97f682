import type { Clock } from '../../src/dashboard/app/live/clock.ts'

/** A clock that moves when it is told to. */
export interface FakeClock extends Clock {
  /** Moves on, and runs what falls due on the way, in its order. */
  pass(ms: number): void
  /** How many things are due later. */
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

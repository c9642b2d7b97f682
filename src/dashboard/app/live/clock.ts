/** The clock and timers of this folder; tests replace it. */
export interface Clock {
  /** Milliseconds of Unix time. */
  now(): number
  /** Runs `work` once, `ms` from now but within a day; the returned function cancels it. */
  after(ms: number, work: () => void): () => void
}

/** Browsers run a timer at once whose delay is longer than 24.8 days. */
const MAX_WAIT_MS = 86_400_000

export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, Math.min(ms, MAX_WAIT_MS))
    return () => clearTimeout(timer)
  },
}

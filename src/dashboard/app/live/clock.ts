/** The clock and timers of this folder; tests replace it. */
export interface Clock {
  /** Milliseconds of Unix time. */
  now(): number
  /** Runs `work` once, `ms` from now; the returned function cancels it. */
  after(ms: number, work: () => void): () => void
}

export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
}

/** Time as the modules of this folder see it, so that tests can hold it still. */
export interface Clock {
  /** Milliseconds of Unix time. */
  now(): number
  /** Runs `work` once, `ms` from now; the returned function calls it off. */
  after(ms: number, work: () => void): () => void
}

export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
}

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

const MIN_MS = 250
const MAX_MS = 15_000

/**
 * The delay before another attempt: random, up to a limit that doubles with each attempt, so that
 * browsers do not all come back at once. It is never shorter than the server asks.
 */
export function toBackoffMs(attempt: number, random: () => number, retryAfterS = 0): number {
  const ceiling = Math.min(MAX_MS, MIN_MS * 2 ** attempt)
  return Math.max(Math.round(MIN_MS + random() * (ceiling - MIN_MS)), 1_000 * retryAfterS)
}

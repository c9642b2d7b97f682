/** How an endpoint has done lately. Times are ms since 1970, by the clock of the database. */
export interface Breaker {
  /** Failures in a row. */
  failures: number
  failingSinceMs: number | null
  /** Pauses in a row. */
  pauses: number
  pausedUntilMs: number | null
}

export const CLOSED: Breaker = { failures: 0, failingSinceMs: null, pauses: 0, pausedUntilMs: null }

/** After so many failures in a row, an endpoint is left alone for a while. */
export const FAILURES_TO_PAUSE = 10
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 600_000
const DAYS_TO_DISABLE = 5

/** For people who ask why it gets nothing any more. */
export const FAILED_FOR_DAYS = `It has failed for ${DAYS_TO_DISABLE} days without a success between`

/** What a failure makes of it. A probe is the one delivery that is let through when a pause is over. */
export function toFailed(breaker: Breaker, isProbe: boolean, nowMs: number): Breaker {
  const failures = breaker.failures + 1
  const failingSinceMs = breaker.failingSinceMs ?? nowMs
  const isPaused = breaker.pausedUntilMs !== null
  // What was under way when the pause began says nothing new.
  if (failures < FAILURES_TO_PAUSE || (isPaused && !isProbe)) {
    return { ...breaker, failures, failingSinceMs }
  }
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** breaker.pauses, LONGEST_PAUSE_MS)
  return { failures, failingSinceMs, pauses: breaker.pauses + 1, pausedUntilMs: nowMs + pauseMs }
}

/** Whether it has done nothing but fail for so long that it is disabled. */
export function isHopeless({ failingSinceMs }: Breaker, nowMs: number): boolean {
  return failingSinceMs !== null && nowMs - failingSinceMs >= DAYS_TO_DISABLE * 86_400_000
}

/** What people see: `probing` once a pause is over, until a delivery has told. */
export function toBreakerState(
  { pausedUntilMs }: Breaker,
  nowMs: number,
): 'closed' | 'paused' | 'probing' {
  if (pausedUntilMs === null) return 'closed'
  return pausedUntilMs > nowMs ? 'paused' : 'probing'
}

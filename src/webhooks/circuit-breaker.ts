/** The recent failures of an endpoint. Times are ms since 1970, by the clock of the database. */
export interface CircuitBreaker {
  /** Failures in a row. */
  failures: number
  failingSinceMs: number | null
  /** Pauses in a row. */
  pauses: number
  pausedUntilMs: number | null
}

export const CLOSED_BREAKER: CircuitBreaker = {
  failures: 0,
  failingSinceMs: null,
  pauses: 0,
  pausedUntilMs: null,
}

/** Failures in a row after which an endpoint is paused. */
export const FAILURES_TO_PAUSE = 10
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 600_000
const DAYS_TO_DISABLE = 5

/** The reason that the webhook's page shows. */
export const FAILING_FOR_DAYS = `It has failed for ${DAYS_TO_DISABLE} days without a success between`

/** The breaker after a failure. A probe is the one delivery that is let through after a pause. */
export function toBreakerAfterFailure(
  breaker: CircuitBreaker,
  isProbe: boolean,
  nowMs: number,
): CircuitBreaker {
  const failures = breaker.failures + 1
  const failingSinceMs = breaker.failingSinceMs ?? nowMs
  const isPaused = breaker.pausedUntilMs !== null
  // Attempts that were in flight when the pause began do not extend it.
  if (failures < FAILURES_TO_PAUSE || (isPaused && !isProbe)) {
    return { ...breaker, failures, failingSinceMs }
  }
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** breaker.pauses, LONGEST_PAUSE_MS)
  return { failures, failingSinceMs, pauses: breaker.pauses + 1, pausedUntilMs: nowMs + pauseMs }
}

/** Whether an endpoint has failed without a success for so long that it is disabled. */
export function shouldDisable({ failingSinceMs }: CircuitBreaker, nowMs: number): boolean {
  return failingSinceMs !== null && nowMs - failingSinceMs >= DAYS_TO_DISABLE * 86_400_000
}

/** The state as it is shown: `probing` after a pause, until the outcome of the probe. */
export function toBreakerState(
  { pausedUntilMs }: CircuitBreaker,
  nowMs: number,
): 'closed' | 'paused' | 'probing' {
  if (pausedUntilMs === null) return 'closed'
  return pausedUntilMs > nowMs ? 'paused' : 'probing'
}

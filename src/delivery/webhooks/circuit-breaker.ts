/** The recent failures of an endpoint. Times are in ms since 1970, by the clock of the database. */
export interface CircuitBreaker {
  /** Consecutive failures. */
  failures: number
  failingSinceMs: number | null
  /** Consecutive pauses. */
  pauses: number
  pausedUntilMs: number | null
}

/** The columns of a webhook, and the end of its pause. */
export interface BreakerRow {
  failures: number
  failing_since: Date | null
  pauses: number
  paused_until: Date | null
}

export function toBreaker(row: BreakerRow): CircuitBreaker {
  return {
    failures: row.failures,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    pauses: row.pauses,
    pausedUntilMs: row.paused_until?.getTime() ?? null,
  }
}

/** The number of consecutive failures that pauses an endpoint. */
const FAILURES_TO_PAUSE = 10
const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 600_000
/** The shortest wait of an endpoint that limits, and the first one if it does not say how long. */
const SHORTEST_LIMIT_MS = 1_000
const FIRST_LIMIT_MS = 5_000
const DAYS_TO_DISABLE = 5

/** Shown on the webhook's page. */
export const FAILING_FOR_DAYS = `Every attempt has failed for ${DAYS_TO_DISABLE} days`

/**
 * Returns the breaker after a failure. `pauses` is the number of consecutive pauses when the
 * attempt began.
 */
export function toBreakerAfterFailure(
  breaker: CircuitBreaker,
  pauses: number,
  nowMs: number,
): CircuitBreaker {
  const failures = breaker.failures + 1
  const failingSinceMs = breaker.failingSinceMs ?? nowMs
  // Attempts that were in flight when a pause began do not extend it.
  if (failures < FAILURES_TO_PAUSE || breaker.pauses > pauses) {
    return { ...breaker, failures, failingSinceMs }
  }
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** breaker.pauses, LONGEST_PAUSE_MS)
  return { failures, failingSinceMs, pauses: breaker.pauses + 1, pausedUntilMs: nowMs + pauseMs }
}

/**
 * Returns the breaker after the endpoint has asked to wait for `afterMs`. If it did not say how
 * long, each wait is twice as long as the one before, up to 10 minutes. It is no failure.
 */
export function toBreakerAfterLimit(
  breaker: CircuitBreaker,
  afterMs: number | undefined,
  nowMs: number,
): CircuitBreaker {
  const pausedUntilMs = breaker.pausedUntilMs ?? 0
  if (afterMs !== undefined) {
    const untilMs = nowMs + Math.max(SHORTEST_LIMIT_MS, afterMs)
    return { ...breaker, pausedUntilMs: Math.max(pausedUntilMs, untilMs) }
  }
  // Attempts that were in flight when the wait began do not extend it.
  if (pausedUntilMs > nowMs) return breaker
  const pauseMs = Math.min(FIRST_LIMIT_MS * 2 ** breaker.pauses, LONGEST_PAUSE_MS)
  return { ...breaker, pauses: breaker.pauses + 1, pausedUntilMs: nowMs + pauseMs }
}

/** Returns true if a pause is one that the receiver asked for, and not one for its failures. */
export function isLimited({ failures }: Pick<CircuitBreaker, 'failures'>): boolean {
  return failures < FAILURES_TO_PAUSE
}

/** Returns true if an endpoint has only failed for so long that it is disabled. */
export function shouldDisable({ failingSinceMs }: CircuitBreaker, nowMs: number): boolean {
  return failingSinceMs !== null && nowMs - failingSinceMs >= DAYS_TO_DISABLE * 86_400_000
}

/**
 * Returns the state to show: `limited` while the receiver has asked to wait, `probing` from the end
 * of a pause until the outcome of the probe.
 */
export function toBreakerState(
  breaker: CircuitBreaker,
  nowMs: number,
): 'closed' | 'limited' | 'paused' | 'probing' {
  const { pausedUntilMs } = breaker
  if (pausedUntilMs === null) return 'closed'
  if (isLimited(breaker)) return pausedUntilMs > nowMs ? 'limited' : 'closed'
  return pausedUntilMs > nowMs ? 'paused' : 'probing'
}

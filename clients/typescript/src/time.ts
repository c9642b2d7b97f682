/** A moment by two clocks. */
export type Moment = {
  /** Unix milliseconds. It counts sleep, and is wrong where the clock is set wrong. */
  wallMs: number
  /** Milliseconds of a clock that is never set, but stops while the machine sleeps. */
  steadyMs: number
}

/** The server forgets an Idempotency-Key after 24 hours. The rest is for the last attempt. */
const MAX_KEY_AGE_MS = 23 * 60 * 60_000
const MAX_SLEEP_MS = 24 * 60 * 60_000
const TOLERANCE_MS = 1_000

export function readMoment(): Moment {
  return { wallMs: Date.now(), steadyMs: performance.now() }
}

/** Milliseconds since a moment, without a change of the clock to an earlier or much later time. */
export function toAgeMs(since: Moment): number {
  const { wall, steady } = compare(since)
  return wall < steady - TOLERANCE_MS || wall > steady + MAX_SLEEP_MS ? steady : wall
}

/**
 * Returns true if the server may have forgotten a key that was first sent at `since`. Then another
 * attempt could have a second effect.
 */
export function isForgotten(since: Moment): boolean {
  const { wall, steady } = compare(since)
  return Math.max(wall, steady) >= MAX_KEY_AGE_MS
}

function compare({ wallMs, steadyMs }: Moment): { wall: number; steady: number } {
  const now = readMoment()
  return { wall: now.wallMs - wallMs, steady: now.steadyMs - steadyMs }
}

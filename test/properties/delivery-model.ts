// The promises about a delivery to a webhook, as a pure function. It knows
// neither tables nor a clock.

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const ATTEMPTS = 10

/** Obstacles of the server itself, at the moment when a delivery is due. */
export type Obstacle = 'database' | 'busy' | 'stop' | 'proxy'

/** A delivery, and what it meets when it is due. Times leave out jumps of the clock. */
export interface Moment {
  /** The number of failed attempts, and the time since the delivery was requested. */
  attempts: number
  ageMs: number
  /** The time since its webhook was disabled; null if it is enabled. */
  disabledMs: number | null
  /** True if failures have paused its webhook. */
  isPaused: boolean
  obstacle: Obstacle | null
  /** True if its event was deleted a moment ago. */
  isHidden: boolean
  /** The status of the response. */
  status: number
  /** True if the URL is changed before the response arrives. */
  isChanged: boolean
}

export interface Fate {
  state: 'waits' | 'delivered' | 'dead' | 'cancelled'
  attempts: number
  isSent: boolean
}

/** Returns what becomes of a delivery. Only its own attempts end it, or the end of its webhook. */
export function toFate(moment: Moment): Fate {
  const { attempts, ageMs, disabledMs, obstacle, status } = moment
  const waits: Fate = { state: 'waits', attempts, isSent: false }
  if (obstacle === 'database' || moment.isHidden) return waits
  if (disabledMs !== null)
    return disabledMs > 30 * DAY_MS ? { ...waits, state: 'cancelled' } : waits
  if (moment.isPaused) return waits
  if (obstacle !== null) return { ...waits, isSent: obstacle === 'stop' }
  const made = { attempts: attempts + 1, isSent: true }
  if (status < 300) return { ...made, state: 'delivered' }
  if (moment.isChanged) return { ...waits, isSent: true }
  if (status === 410) return { ...made, state: 'dead' }
  if (status === 429 && ageMs <= 4 * DAY_MS) return { ...waits, isSent: true }
  return { ...made, state: made.attempts < ATTEMPTS ? 'waits' : 'dead' }
}

import type { ClaimedDelivery } from './claims.ts'
import type { DeliveryOutcome, Postponed } from './kind.ts'

/** How a delivery ends. */
export const FINAL_STATES = ['delivered', 'failed', 'dead', 'cancelled', 'withheld'] as const

/** The settlement of a claimed delivery: its final `state`, or null when it waits for the next attempt. */
export interface Settlement {
  state: (typeof FINAL_STATES)[number] | null
  /** 1 for an attempt that was made. */
  attempts: 0 | 1
  /** Until the next attempt; null with a state. */
  delayMs: number | null
  reason: string | null
  latencyMs: number | null
}

export interface AttemptResult {
  outcome: DeliveryOutcome
  /** 1 for the first attempt. */
  attempt: number
  schedule: readonly number[]
  /** Since the event was created. */
  latencyMs: number
  /** Since the delivery was due first. */
  waitedMs: number
  /** From 0 up to 1. */
  random: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MAX_REASON = 500
const MIN_POSTPONED_MS = 250
const MAX_POSTPONED_MS = 7 * DAY_MS
/** Claims without an outcome, after which a delivery is given up: its attempts seem to end the server. */
const MAX_CLAIMS = 10
const NONE = { state: null, attempts: 0, delayMs: null, reason: null, latencyMs: null } as const

/** Returns the delivery as if it had not been claimed. */
export const RELEASED: Settlement = { ...NONE, delayMs: 0 }

/** The outcome of an attempt that could not begin without the database. */
export const DATABASE_UNAVAILABLE: Postponed = {
  kind: 'postponed',
  afterMs: 1_000,
  giveUpAfterMs: 3 * DAY_MS,
  reason: "The server's own database did not answer",
}

/** The outcome of a delivery that needs no attempt, if it is one. */
export function findEarlyOutcome({
  isGone,
  hiddenMs,
  claimCount,
}: ClaimedDelivery): DeliveryOutcome | undefined {
  if (isGone || hiddenMs !== null) return { kind: 'cancelled', reason: 'The event was deleted' }
  if (claimCount <= MAX_CLAIMS) return undefined
  return { kind: 'gone', reason: `The server ended ${MAX_CLAIMS} times during this attempt` }
}

/** Decides what becomes of a delivery after an attempt. */
export function toSettlement(result: AttemptResult): Settlement {
  const { outcome, attempt, schedule, waitedMs } = result
  if (outcome.kind === 'done') {
    const latencyMs = Math.max(0, Math.round(result.latencyMs))
    return { ...NONE, state: 'delivered', attempts: 1, latencyMs }
  }
  const reason = toText(outcome.reason)
  switch (outcome.kind) {
    case 'gone':
      return { ...NONE, state: 'dead', attempts: 1, reason }
    case 'failed':
      return { ...NONE, state: 'failed', attempts: 1, reason }
    case 'cancelled':
    case 'withheld':
      return { ...NONE, state: outcome.kind, reason }
    case 'postponed': {
      if (waitedMs > outcome.giveUpAfterMs) {
        const hours = Math.round(waitedMs / HOUR_MS)
        return {
          ...NONE,
          state: 'dead',
          reason: toText(`${reason}. It has waited for ${hours} hours`),
        }
      }
      const delayMs = Math.max(MIN_POSTPONED_MS, Math.min(MAX_POSTPONED_MS, outcome.afterMs || 0))
      return { ...NONE, delayMs: Math.round(delayMs), reason }
    }
    case 'retry': {
      const scheduledMs = schedule[attempt]
      if (scheduledMs === undefined) return { ...NONE, state: 'dead', attempts: 1, reason }
      // The schedule give or take 20 %, and no less than the target asked for, up to a day.
      const askedMs = Math.min(DAY_MS, Math.max(0, outcome.afterMs || 0))
      const delayMs = Math.round(Math.max(scheduledMs * (0.8 + 0.4 * result.random), askedMs))
      return { ...NONE, attempts: 1, delayMs, reason }
    }
  }
}

/** A reason of bounded length that Postgres can store; targets may have a say in it. */
function toText(reason: string): string {
  return [...reason.toWellFormed().replaceAll('\u0000', '\ufffd')].slice(0, MAX_REASON).join('')
}

import { NIL_UUID } from '../../base/ids.ts'
import type { ClaimedDelivery, DeliveryOutcome, Postponed } from './delivery-kind.ts'
import { findDelay } from './schedule.ts'

/** The final states of a delivery. */
export const FINAL_STATES = ['delivered', 'failed', 'dead', 'cancelled', 'withheld'] as const

/**
 * The settlement of a claimed delivery: its final `state`, or null if it waits for another attempt.
 */
export interface Settlement {
  state: (typeof FINAL_STATES)[number] | null
  /** 1 if an attempt was made: a request has begun. */
  attempts: 0 | 1
  /** The time until the next attempt; null with a final state. */
  delayMs: number | null
  reason: string | null
  latencyMs: number | null
}

export interface AttemptResult {
  outcome: DeliveryOutcome
  /** True if a request has begun. Nothing else uses up an attempt. */
  hasBegun: boolean
  /** The number of the attempt, from 1. */
  attempt: number
  /** More than one if a server ended during an attempt. */
  claimCount: number
  schedule: readonly number[]
  /** The time since the event was created. */
  latencyMs: number
  /** A random number from 0 to 1, for the jitter of the schedule. */
  random: number
}

const MAX_REASON = 500
/** The end of a reason for not sending a delivery, if a server ended during an attempt of it. */
const MAYBE = '. It may have arrived: the server ended during an attempt'
const MIN_POSTPONED_MS = 250
const MAX_POSTPONED_MS = 7 * 86_400_000
/**
 * A delivery that was claimed this often without an outcome is given up, because its attempts seem
 * to crash the server.
 */
const MAX_CLAIMS = 10
const NONE = {
  state: null,
  attempts: 0,
  delayMs: null,
  reason: null,
  latencyMs: null,
} as const

/** Releases the lease without an attempt: the delivery is due at once. */
export const RELEASED: Settlement = { ...NONE, delayMs: 0 }

/** The outcome of an attempt that could not begin because the database was unavailable. */
export const DATABASE_UNAVAILABLE: Postponed = {
  kind: 'postponed',
  afterMs: 1_000,
  reason: 'The database of this server did not answer',
}

/** The outcome of an attempt that could not begin because of a bug. */
export const PREVENTED: Postponed = {
  kind: 'postponed',
  afterMs: 60_000,
  reason: 'An error of this server prevented the attempt',
  isAlone: true,
}

/** A little longer than a deleted event can be restored. */
export const RESTORE_MS = 15_000

/**
 * The outcome if the event was deleted after the claim. Unless it is restored, the next claim ends
 * the delivery.
 */
export const HIDDEN: Postponed = {
  kind: 'postponed',
  afterMs: RESTORE_MS,
  reason: 'The event was deleted and can still be restored',
  isAlone: true,
}

/** Returns the outcome of a delivery that needs no attempt; undefined if it needs one. */
export function findEarlyOutcome({
  projectId,
  eventId,
  targetId,
  isGone,
  hiddenMs,
  claimCount,
}: ClaimedDelivery): DeliveryOutcome | undefined {
  // The summary of quiet hours and the end of a silence belong to no event.
  if ((isGone && projectId !== NIL_UUID && eventId !== targetId) || hiddenMs !== null)
    return { kind: 'cancelled', reason: 'The event was deleted' }
  // A silence whose end is given up would stay, and members would never be told.
  if (claimCount <= MAX_CLAIMS || eventId === targetId) return undefined
  return { kind: 'gone', reason: `The server stopped ${MAX_CLAIMS} times during this attempt` }
}

/** Decides what becomes of a delivery after an attempt. */
export function toSettlement(result: AttemptResult): Settlement {
  const { outcome, attempt, schedule, hasBegun } = result
  const attempts = hasBegun ? 1 : 0
  if (outcome.kind === 'done') {
    const latencyMs = Math.max(0, Math.round(result.latencyMs))
    return { ...NONE, state: 'delivered', attempts, latencyMs }
  }
  const reason = toText(outcome.reason)
  switch (outcome.kind) {
    case 'gone':
      return { ...NONE, state: 'dead', attempts, reason }
    case 'failed':
      return { ...NONE, state: 'failed', attempts, reason }
    case 'cancelled':
      return { ...NONE, state: 'cancelled', reason }
    case 'withheld':
      return { ...NONE, state: 'withheld', reason: reason + (result.claimCount > 1 ? MAYBE : '') }
    case 'postponed': {
      const delayMs = Math.max(MIN_POSTPONED_MS, Math.min(MAX_POSTPONED_MS, outcome.afterMs || 0))
      return { ...NONE, delayMs: Math.round(delayMs), reason }
    }
    case 'retry': {
      const delayMs = findDelay(schedule, attempt, { ...result, askedMs: outcome.afterMs })
      return delayMs === undefined
        ? { ...NONE, state: 'dead', attempts: 1, reason }
        : { ...NONE, attempts: 1, delayMs, reason }
    }
  }
}

/**
 * Cuts a reason to a length and form that Postgres can store. A part of it can come from the
 * target.
 */
function toText(reason: string): string {
  return [...reason.toWellFormed().replaceAll('\u0000', '\ufffd')].slice(0, MAX_REASON).join('')
}

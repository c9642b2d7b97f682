import type { Outcome } from './kind.ts'

/** How a delivery ends. */
export const FINAL_STATES = ['delivered', 'failed', 'dead', 'cancelled', 'withheld'] as const
export type FinalState = (typeof FINAL_STATES)[number]

/** What becomes of a claimed job: it ends in `state`, or with null it waits for the next attempt. */
export interface Settlement {
  state: FinalState | null
  /** 1 for an attempt that was made. */
  attempts: 0 | 1
  /** Until the next attempt; null with a state. */
  delayMs: number | null
  reason: string | null
  latencyMs: number | null
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MAX_REASON = 500
/** A job that was postponed is looked at again neither at once nor after an eternity. */
const MIN_POSTPONED_MS = 250
const MAX_POSTPONED_MS = 7 * DAY_MS
const NOTHING = {
  attempts: 0,
  delayMs: null,
  reason: null,
  latencyMs: null,
} as const

/** The job goes back as if it had not been claimed. */
export const HANDED_BACK: Settlement = { ...NOTHING, state: null, delayMs: 0 }

/** What was asked, told and drawn. */
export interface Attempted {
  outcome: Outcome
  /** 1 for the first. */
  attempt: number
  schedule: readonly number[]
  /** From the event's creation until now. */
  latencyMs: number
  /** Since the job was to be made. */
  waitedMs: number
  /** From 0 up to 1. */
  random: number
}

/** What becomes of a job after an attempt. */
export function toSettlement(attempted: Attempted): Settlement {
  const { outcome, attempt, schedule, random } = attempted
  switch (outcome.kind) {
    case 'done':
      return {
        ...NOTHING,
        state: 'delivered',
        attempts: 1,
        latencyMs: Math.max(0, Math.round(attempted.latencyMs)),
      }
    case 'gone':
      return { ...NOTHING, state: 'dead', attempts: 1, reason: toText(outcome.reason) }
    case 'failed':
      return { ...NOTHING, state: 'failed', attempts: 1, reason: toText(outcome.reason) }
    case 'cancelled':
    case 'withheld':
      return { ...NOTHING, state: outcome.kind, reason: toText(outcome.reason) }
    case 'postponed': {
      const reason = toText(outcome.reason)
      if (attempted.waitedMs > outcome.withinMs) {
        const hours = Math.round(attempted.waitedMs / HOUR_MS)
        return {
          ...NOTHING,
          state: 'dead',
          reason: toText(`${reason}. It has waited for ${hours} hours`),
        }
      }
      const delayMs = Math.max(MIN_POSTPONED_MS, Math.min(MAX_POSTPONED_MS, outcome.afterMs || 0))
      return { ...NOTHING, state: null, delayMs: Math.round(delayMs), reason }
    }
    case 'retry': {
      const reason = toText(outcome.reason)
      const delayMs = toDelayMs(schedule[attempt], { afterMs: outcome.afterMs ?? 0, random })
      return delayMs === undefined
        ? { ...NOTHING, state: 'dead', attempts: 1, reason }
        : { ...NOTHING, state: null, attempts: 1, delayMs, reason }
    }
  }
}

/** The scheduled time give or take 20 %, and no less than the target asked for, up to a day. */
function toDelayMs(
  scheduledMs: number | undefined,
  { afterMs, random }: { afterMs: number; random: number },
): number | undefined {
  if (scheduledMs === undefined) return undefined
  const asked = Math.min(DAY_MS, Math.max(0, afterMs || 0))
  return Math.round(Math.max(scheduledMs * (0.8 + 0.4 * random), asked))
}

/** A target may have had a say in it: what Postgres does not take, and what is too long, goes. */
function toText(reason: string): string {
  return [...reason.toWellFormed().replaceAll('\u0000', '\ufffd')].slice(0, MAX_REASON).join('')
}

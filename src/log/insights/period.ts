import { HOUR_MS } from '../events/time-buckets.ts'

/** A period in whole hours up to the present one, and the same part of the period before. */
export interface Period {
  /** The start of the period. The period before ends there. */
  fromMs: number
  /** The end of the present hour. */
  toMs: number
  /** The start of the period before. */
  previousFromMs: number
  /** As far into the period before as now is into the period. */
  previousToMs: number
}

/** Returns the period of the last `hours` hours, the present one included. */
export function toPeriod(hours: number, nowMs: number): Period {
  const lengthMs = hours * HOUR_MS
  const toMs = (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS
  const fromMs = toMs - lengthMs
  return { fromMs, toMs, previousFromMs: fromMs - lengthMs, previousToMs: nowMs - lengthMs }
}

import { Fault } from '../../base/errors.ts'
import { quotaRefusals } from '../../base/metrics.ts'

/** Counts a refusal, and returns the fault that says which quota is used, and what to do. */
export function toExceeded(quota: string, what: string, limit: number, advice: string): Fault {
  quotaRefusals.inc({ quota })
  const used = `The organization has used its quota of ${what} (${limit.toLocaleString('en')}).`
  return new Fault('quota_exceeded', `${used} ${advice}`)
}

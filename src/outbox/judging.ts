import type { Claimed } from './claim.ts'
import type { Outcome, Postponed } from './kind.ts'

/** Workers that a delivery may outlive: what ends every one of them is not tried for ever. */
const MAX_TAKES = 10
/** For how long a delivery waits for the database, each time and in all. */
const BUSY_MS = 1_000
const MAX_BUSY_MS = 3 * 86_400_000

/** What is clear without an attempt. */
export function judge({ isGone, hiddenMs, takes }: Claimed): Outcome | undefined {
  if (isGone || hiddenMs !== null) return { kind: 'cancelled', reason: 'The event was deleted' }
  if (takes <= MAX_TAKES) return undefined
  return { kind: 'gone', reason: `The server ended ${MAX_TAKES} times during this attempt` }
}

/** The job of an attempt that the database has kept from beginning. */
export function toLater(): Postponed {
  const reason = "The server's own database did not answer"
  return { kind: 'postponed', afterMs: BUSY_MS, withinMs: MAX_BUSY_MS, reason }
}

/** What a bug is called and where it happened: its message may name the target, and that can be a secret. */
export function toBug(error: unknown): { reason: string; stack?: string } {
  if (!(error instanceof Error)) return { reason: typeof error }
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line))
  return { reason: error.name, stack: frames?.slice(0, 8).join('\n') ?? '' }
}

import { toPeriod } from '../../base/period.ts'

/** When a rule fires. Pure: what is live and what a preview shows are the same. */
export interface Condition {
  /** It fires with more arrivals than this in the time. Null: it fires with none. */
  moreThan: number | null
  withinMs: number
}

/** The memory of a rule. */
export interface RuleState {
  /** When the last arrivals of the time came, oldest first: no more than decide. */
  recent: number[]
  /** Since when it fires; null while it does not. */
  firingMs: number | null
}

/** A change of a rule. */
export interface Change {
  kind: 'fires' | 'recovers'
  atMs: number
}

interface Evaluated {
  state: RuleState
  changes: Change[]
  /** The number of arrivals that were evaluated. */
  used: number
  /** When the rule changes without an arrival: 0 if not all was evaluated. */
  nextAtMs: number
}

/** Returns the state of a rule that looks from a moment on. Silence counts from then. */
export function begin({ moreThan }: Condition, atMs: number): RuleState {
  return { recent: moreThan === null ? [atMs] : [], firingMs: null }
}

/**
 * Evaluates the times of the next arrivals of a log, and then the time up to `untilMs`, if it is
 * known. Any cutting of a log into steps gives the same changes. It ends early after the arrival
 * that makes `maxChanges` changes.
 */
export function evaluate(
  { moreThan, withinMs }: Condition,
  before: RuleState,
  arrivals: readonly number[],
  untilMs: number | undefined,
  maxChanges = Infinity,
): Evaluated {
  const size = (moreThan ?? 0) + 1
  let { recent, firingMs } = before
  recent = [...recent]
  const changes: Change[] = []

  const findEnd = () => (recent.length === size ? recent[0]! + withinMs : Infinity)
  function turn(atMs: number, isFull: boolean): void {
    const fires = isFull === (moreThan !== null)
    firingMs = fires ? atMs : null
    changes.push({ kind: fires ? 'fires' : 'recovers', atMs })
  }
  function pass(atMs: number): void {
    // The clock was set back. One that was ahead must not count for longer than the time.
    if ((recent.at(-1) ?? 0) > atMs) recent = recent.map(x => Math.min(x, atMs))
    const endMs = findEnd()
    while (recent.length > 0 && recent[0]! + withinMs <= atMs) recent.shift()
    if (endMs <= atMs) turn(endMs, false)
  }

  let used = 0
  while (used < arrivals.length && changes.length < maxChanges) {
    const atMs = arrivals[used++]!
    pass(atMs)
    const wasFull = recent.length === size
    if (recent.push(atMs) > size) recent.shift()
    if (!wasFull && recent.length === size) turn(atMs, true)
  }
  const isWhole = untilMs !== undefined && used === arrivals.length
  if (isWhole) pass(untilMs)
  return { state: { recent, firingMs }, changes, used, nextAtMs: isWhole ? findEnd() : 0 }
}

/** Returns a condition in words: `more than 3 in 10 minutes`, or `nothing for 1 hour`. */
export function toConditionText({ moreThan, withinMs }: Condition): string {
  const time = toPeriod(withinMs / 1000)
  return moreThan === null ? `nothing for ${time}` : `more than ${moreThan} in ${time}`
}

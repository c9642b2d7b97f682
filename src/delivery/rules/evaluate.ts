import { toPeriod } from '../../base/period.ts'

/** When a rule fires. Pure: what is live and what a preview shows are the same. */
export interface Condition {
  /** It fires with more arrivals than this in the time. Null: it fires with none. */
  moreThan: number | null
  withinMs: number
}

/** An event that the search of a rule finds: its seq, and when it was accepted. */
export interface Arrival {
  seq: number
  atMs: number
}

/** The memory of a rule: the last arrivals that count, oldest first. */
export interface RuleState {
  recent: Arrival[]
  /** Since when it fires; null while it does not. */
  firingMs: number | null
}

/** A change of a rule. `seqs` has up to three of the last arrivals, newest first. */
export interface Change {
  kind: 'fires' | 'recovers'
  atMs: number
  seqs: number[]
}

interface Evaluated {
  state: RuleState
  changes: Change[]
  /** The number of arrivals that were evaluated. */
  used: number
  /** When the rule changes without an arrival. Null if it does not. */
  nextAtMs: number | null
}

/** Returns the state of a rule that looks from a moment on. Silence counts from then. */
export function begin({ moreThan }: Condition, from: Arrival): RuleState {
  return { recent: moreThan === null ? [from] : [], firingMs: null }
}

/**
 * Evaluates the next arrivals of a log, and then the time up to `untilMs`. Any cutting of a log
 * into steps gives the same changes. It ends early after the arrival that makes
 * `maxChanges` changes.
 */
export function evaluate(
  { moreThan, withinMs }: Condition,
  { recent: before, firingMs: wasFiringMs }: RuleState,
  arrivals: readonly Arrival[],
  untilMs: number,
  maxChanges = Infinity,
): Evaluated {
  const size = (moreThan ?? 0) + 1
  const recent = [...before]
  const changes: Change[] = []
  /** True while the last `size` arrivals are all of the last `withinMs`. */
  let firingMs = wasFiringMs
  let isFull = (firingMs !== null) === (moreThan !== null)
  let used = 0

  const findEnd = () => (isFull ? (recent[0]?.atMs ?? 0) + withinMs : null)
  function turn(atMs: number): void {
    isFull = !isFull
    const kind = isFull === (moreThan !== null) ? 'fires' : 'recovers'
    firingMs = kind === 'fires' ? atMs : null
    const seqs = recent.slice(-3).map(({ seq }) => seq)
    changes.push({ kind, atMs, seqs: seqs.toReversed() })
  }
  function pass(untilMs: number): void {
    const endMs = findEnd()
    if (endMs !== null && endMs <= untilMs) turn(endMs)
  }

  for (const { seq, atMs: rawMs } of arrivals) {
    if (changes.length >= maxChanges) break
    // The clock may have been set back.
    const atMs = Math.max(rawMs, recent.at(-1)?.atMs ?? -Infinity)
    pass(atMs)
    recent.push({ seq, atMs })
    if (recent.length > size) recent.shift()
    const [oldest] = recent
    if (!isFull && recent.length === size && oldest && oldest.atMs > atMs - withinMs) turn(atMs)
    used++
  }
  if (used === arrivals.length) pass(untilMs)
  return { state: { recent, firingMs }, changes, used, nextAtMs: findEnd() }
}

/** Returns a condition in words: `more than 3 in 10 minutes`, or `nothing for 1 hour`. */
export function toConditionText({ moreThan, withinMs }: Condition): string {
  const time = toPeriod(withinMs / 1000)
  return moreThan === null ? `nothing for ${time}` : `more than ${moreThan} in ${time}`
}

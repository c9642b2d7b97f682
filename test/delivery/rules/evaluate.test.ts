import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  begin,
  evaluate,
  type Arrival,
  type Change,
  type Condition,
} from '../../../src/delivery/rules/evaluate.ts'

const cases = fc.record({
  condition: fc.record({
    moreThan: fc.option(fc.integer({ min: 0, max: 3 })),
    withinMs: fc.integer({ min: 1, max: 12 }),
  }),
  times: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 14 }),
  endMs: fc.integer({ min: 40, max: 60 }),
  /** How many arrivals each step sees, and how long after the last of them it happens. */
  steps: fc.array(fc.record({ count: fc.nat(3), laterMs: fc.option(fc.nat(20)) })),
  maxChanges: fc.integer({ min: 1, max: 3 }),
})

/** Counts the arrivals of the last `withinMs` at each millisecond, and after each arrival. */
function count({ moreThan, withinMs }: Condition, arrivals: Arrival[], endMs: number): Change[] {
  const changes: Change[] = []
  let seen: Arrival[] = moreThan === null ? [{ seq: 0, atMs: 0 }] : []
  let isFiring = false
  const look = (atMs: number) => {
    const recent = seen.filter(one => one.atMs > atMs - withinMs)
    if (isFiring === (moreThan === null ? recent.length === 0 : recent.length > moreThan)) return
    isFiring = !isFiring
    const seqs = seen.slice(-Math.min(3, (moreThan ?? 0) + 1)).map(({ seq }) => seq)
    changes.push({ kind: isFiring ? 'fires' : 'recovers', atMs, seqs: seqs.toReversed() })
  }
  for (let atMs = 0; atMs <= endMs; atMs++) {
    look(atMs)
    for (const arrival of arrivals.filter(one => one.atMs === atMs)) {
      seen = [...seen, arrival]
      look(atMs)
    }
  }
  return changes
}

test('attention §7 a rule fires and recovers as a count at every moment says, in any steps', () => {
  fc.assert(
    fc.property(cases, ({ condition, times, endMs, steps, maxChanges }) => {
      // The clock may have been set back between two arrivals.
      let lastMs = 0
      const raw = times.map((atMs, n) => ({ seq: n + 1, atMs }))
      const arrivals = raw.map(({ seq, atMs }) => ({
        seq,
        atMs: (lastMs = Math.max(lastMs, atMs)),
      }))
      const expected = count(condition, arrivals, endMs)
      const whole = evaluate(condition, begin(condition, { seq: 0, atMs: 0 }), raw, endMs)
      expect(whole.changes).toEqual(expected)

      let state = begin(condition, { seq: 0, atMs: 0 })
      let done = 0
      const changes: Change[] = []
      const step = (count: number, untilMs: number) => {
        const part = raw.slice(done, done + count)
        const result = evaluate(condition, state, part, untilMs, maxChanges)
        expect(result.changes.length).toBeLessThanOrEqual(maxChanges + 2)
        // The state is stored as JSON.
        state = JSON.parse(JSON.stringify(result.state))
        done += result.used
        changes.push(...result.changes)
        return result
      }
      for (const { count, laterMs } of steps) {
        const next = arrivals[done + count]?.atMs ?? endMs
        const last = arrivals[done + count - 1]?.atMs ?? arrivals[done - 1]?.atMs ?? 0
        step(count, laterMs === null ? -Infinity : Math.min(last + laterMs, next))
      }
      let result = step(raw.length, endMs)
      while (done < raw.length) result = step(raw.length, endMs)
      expect(changes).toEqual(expected)
      // Sleeping until the next time misses nothing.
      const { nextAtMs } = result
      const later = evaluate(condition, state, [], endMs + 100).changes
      expect(later.map(({ atMs }) => atMs)).toEqual(nextAtMs === null ? [] : [nextAtMs])
    }),
    { numRuns: 10_000 },
  )
})

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  begin,
  evaluate,
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
function count({ moreThan, withinMs }: Condition, arrivals: number[], endMs: number): Change[] {
  const changes: Change[] = []
  let seen = moreThan === null ? [0] : []
  let isFiring = false
  const look = (atMs: number) => {
    const recent = seen.filter(one => one > atMs - withinMs)
    if (isFiring === (moreThan === null ? recent.length === 0 : recent.length > moreThan)) return
    isFiring = !isFiring
    changes.push({ kind: isFiring ? 'fires' : 'recovers', atMs })
  }
  let nowMs = 0
  const wait = (untilMs: number) => {
    // The clock was set back, and what came before came now at the latest.
    if (untilMs < nowMs)
      seen = seen.filter(one => one > nowMs - withinMs).map(one => Math.min(one, untilMs))
    for (nowMs = Math.min(nowMs, untilMs); nowMs < untilMs; nowMs++) look(nowMs)
    look(untilMs)
  }
  for (const atMs of arrivals) {
    wait(atMs)
    seen = [...seen, atMs]
    look(atMs)
  }
  wait(endMs)
  return changes
}

test('attention §7 a rule fires and recovers as a count at every moment says, in any steps', () => {
  fc.assert(
    fc.property(cases, ({ condition, times, endMs, steps, maxChanges }) => {
      const expected = count(condition, times, endMs)
      const whole = evaluate(condition, begin(condition, 0), times, endMs)
      expect(whole.changes).toEqual(expected)

      let state = begin(condition, 0)
      let done = 0
      const changes: Change[] = []
      const step = (count: number, untilMs: number | undefined) => {
        const part = times.slice(done, done + count)
        const result = evaluate(condition, state, part, untilMs, maxChanges)
        expect(result.changes.length).toBeLessThanOrEqual(maxChanges + 2)
        // The state keeps no more than counts.
        expect(result.state.recent.length).toBeLessThanOrEqual((condition.moreThan ?? 0) + 1)
        state = JSON.parse(JSON.stringify(result.state))
        done += result.used
        changes.push(...result.changes)
        return result
      }
      for (const { count, laterMs } of steps) {
        const next = times[done + count] ?? endMs
        const last = times[Math.min(done + count, times.length) - 1] ?? 0
        step(count, laterMs === null ? undefined : Math.min(last + laterMs, next))
      }
      let result = step(times.length, endMs)
      while (done < times.length) result = step(times.length, endMs)
      expect(changes).toEqual(expected)
      // Sleeping until the next time misses nothing.
      const { nextAtMs } = result
      const later = evaluate(condition, state, [], endMs + 100).changes
      expect(later.map(({ atMs }) => atMs)).toEqual(nextAtMs === Infinity ? [] : [nextAtMs])
    }),
    { numRuns: 10_000 },
  )
})

test('attention §7 a clock that was ahead once makes a rule late by no more than its time', () => {
  const silence = { moreThan: null, withinMs: 10 }
  // An event of the future, and then the right time.
  const { state } = evaluate(silence, begin(silence, 0), [5_000], 20)
  expect(evaluate(silence, state, [], 40).changes).toEqual([{ kind: 'fires', atMs: 30 }])
})

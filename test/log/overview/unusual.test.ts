import { expect, test } from 'bun:test'
import { findDeviation, type Activity } from '../../../src/log/overview/unusual.ts'

const even = (hour: number): Activity => ({ running: hour, hour, day: 24 * hour })
const weeks = (...hours: number[]) => hours.map(even)

/** The kind and the span of what is unusual. */
function judge(now: Partial<Activity>, past: readonly Activity[], knownWeeks = 4): string {
  const usual = past[0] ?? even(0)
  const found = findDeviation({ ...usual, ...now }, past, knownWeeks)
  return found ? `${found.kind} ${found.span}` : 'usual'
}

test('activity like in one of the past weeks is usual', () => {
  const past = weeks(100, 140, 90, 110)
  for (const running of [0, 50, 100, 140, 200]) expect(judge({ running }, past)).toBe('usual')
  for (const hour of [80, 100, 140, 200]) expect(judge({ hour }, past)).toBe('usual')
  for (const day of [2_000, 3_000, 6_000]) expect(judge({ day }, past)).toBe('usual')
})

test('more than twice the loudest of the past weeks is loud, also before the hour is over', () => {
  const past = weeks(100, 140, 90, 110)
  expect(judge({ running: 281 }, past)).toBe('loud running')
  expect(judge({ hour: 281 }, past)).toBe('loud hour')
  expect(judge({ day: 281 * 24 }, past)).toBe('loud day')
  expect(findDeviation({ running: 0, hour: 281, day: 2_400 }, past, 4)).toEqual({
    kind: 'loud',
    span: 'hour',
    count: 281,
    usual: { least: 90, most: 140 },
  })
})

test('less than half of the quietest of the past weeks is silent, if that had enough events', () => {
  const past = weeks(100, 140, 90, 110)
  expect(judge({ hour: 44 }, past)).toBe('silent hour')
  expect(judge({ hour: 44, day: 500 }, past)).toBe('silent day')
  expect(judge({ running: 0 }, past)).toBe('usual')
  // Random counts of 16 are sometimes none. Counts of 17 are so less than once in a million hours.
  const at = (hour: number) => weeks(hour, hour, hour, hour).map(week => ({ ...week, day: 0 }))
  expect(judge({ hour: 0 }, at(16))).toBe('usual')
  expect(judge({ hour: 0 }, at(17))).toBe('silent hour')
})

test('a nightly job that did not report is silent, and a rare event that did not happen is usual', () => {
  const nights = (...days: number[]) => days.map(day => ({ running: 0, hour: 0, day }))
  expect(judge({ day: 0 }, nights(1, 1, 1, 1))).toBe('silent day')
  expect(judge({ day: 0 }, nights(2, 1, 1, 1))).toBe('usual')
  expect(judge({ day: 0 }, nights(1, 1), 2)).toBe('usual')
})

test('a few events are not loud', () => {
  const past = weeks(0, 0, 0, 0)
  expect(judge({ running: 10 }, past)).toBe('usual')
  expect(judge({ running: 11 }, past)).toBe('loud running')
  // Four times the square root of 5 is 9.
  expect(judge({ running: 13 }, weeks(5, 5, 5, 5))).toBe('usual')
  expect(judge({ running: 14 }, weeks(5, 5, 5, 5))).toBe('loud running')
})

test('weeks before a project or channel existed are no silent weeks', () => {
  expect(judge({ running: 500 }, weeks(0, 0, 0, 0), 0.5)).toBe('usual')
  expect(judge({ running: 500 }, weeks(0, 0, 0, 0), 1.9)).toBe('usual')
  expect(judge({ running: 500 }, weeks(0, 0, 0, 0), 2)).toBe('loud running')
  expect(judge({ hour: 0 }, weeks(100, 100, 0, 0), 1)).toBe('silent hour')
  expect(judge({ hour: 0 }, weeks(100, 0, 0, 0), 1)).toBe('usual')
  // Imported events are older than the project.
  expect(judge({ running: 500 }, weeks(0, 0, 3, 0), 0)).toBe('loud running')
})

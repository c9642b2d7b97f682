import { describe, expect, test } from 'bun:test'
import {
  isSameDay,
  toClockTime,
  toDayName,
  toFullTime,
  toShortTime,
  toTimeAgo,
} from '../../src/dashboard/app/time.ts'

// Moments are made from a local calendar, so that the test passes in every time zone.
const NOW = new Date(2026, 10, 20, 15, 30).getTime()
const ago = (minutes: number) => NOW - minutes * 60_000

describe('dashboard.md: times are relative, with the absolute time as title', () => {
  test.each([
    [0, 'now'],
    [1, '1 min ago'],
    [170, '2 hr ago'],
    [-3, '15:33'],
    [16 * 60, '23:30'],
  ])('in a sentence, %d minutes ago is %p', (minutes, text) => {
    expect(toTimeAgo(ago(minutes), NOW, 'en-GB')).toBe(text)
  })

  test.each([
    [0, 'now'],
    [0.7, 'now'],
    [-0.7, 'now'],
    [1, '1m'],
    [59.9, '59m'],
    [60, '1h'],
    [170, '2h'],
    [15 * 60, '15h'],
    [-3, '15:33'],
    [16 * 60, '23:30'],
  ])('%d minutes ago is %p', (minutes, text) => {
    expect(toShortTime(ago(minutes), NOW, 'en-GB')).toBe(text)
  })

  test.each([
    ['de', '3m', '15:30'],
    ['ja', '3分', '15:30'],
  ])("in the reader's language: %s", (locale, short, clock) => {
    expect(toShortTime(ago(3), NOW, locale)).toContain(short.slice(0, 1))
    expect(toClockTime(NOW, locale)).toBe(clock)
  })

  test('words for now, today and long ago are in German, too', () => {
    expect(toShortTime(NOW, NOW, 'de')).toBe('jetzt')
    expect(toTimeAgo(ago(3), NOW, 'de')).toBe('vor 3 Min.')
    expect(toDayName(NOW, NOW, 'de')).toBe('Heute')
    expect(toDayName(ago(16 * 60), NOW, 'de')).toBe('Gestern')
  })

  test('the absolute time names day, second and zone', () => {
    expect(toFullTime(NOW, 'en-GB')).toMatch(/Friday.*20 November 2026.*15:30:00 \S+/)
  })

  test.each([
    [new Date(2026, 10, 20, 0, 0), 'Today'],
    [new Date(2026, 10, 19, 23, 59), 'Yesterday'],
    [new Date(2026, 10, 18), 'Wednesday 18 November'],
    [new Date(2025, 11, 31), 'Wednesday 31 December 2025'],
  ])('%p is %p', (day, name) => {
    expect(toDayName(day.getTime(), NOW, 'en-GB').replace(',', '')).toBe(name)
  })

  test("days begin at midnight of the reader's time zone", () => {
    const midnight = new Date(2026, 10, 20).getTime()
    expect([isSameDay(midnight, NOW), isSameDay(midnight - 1, NOW)]).toEqual([true, false])
  })
})

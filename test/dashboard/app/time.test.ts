import { describe, expect, test } from 'bun:test'
import {
  isSameDay,
  toClockTime,
  toDayAndMonth,
  toDayName,
  toFullTime,
  toPeriodName,
  toRangeName,
  toShortTime,
  toTimeAgo,
} from '../../../src/dashboard/app/time.ts'

// Moments are made from a local calendar, so that the test passes in every time zone.
const NOW = new Date(2026, 10, 20, 15, 30).getTime()
const ago = (minutes: number) => NOW - minutes * 60_000

describe('dashboard.md: times are relative, with the absolute time as title', () => {
  test.each([
    [1, 'Last hour'],
    [48, 'Last 48 hours'],
    [168, 'Last 7 days'],
    [1001, `Last ${(1001).toLocaleString()} hours`],
  ])('the name of %d hours is %p', (hours, name) => {
    expect(toPeriodName(hours)).toBe(name)
  })

  test.each([
    [0, 'now'],
    [0.7, '40s ago'],
    [1, '1m ago'],
    [170, '2h ago'],
    [-3, '15:33'],
    [16 * 60, '23:30'],
  ])('in a sentence, %d minutes ago is %p', (minutes, text) => {
    expect(toTimeAgo(ago(minutes), NOW, 'en-GB')).toBe(text)
  })

  test.each([
    [0, 'now'],
    [0.08, 'now'],
    [0.09, '5s'],
    [0.7, '40s'],
    [0.999, '55s'],
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
    ['en-US', '3:30 PM', 'Nov 20', 'Wednesday, November 18'],
    ['en-GB', '15:30', '20 Nov', 'Wednesday, 18 November'],
    ['de', '15:30', '20 Nov', 'Wednesday, 18 November'],
    ['pt-BR', '15:30', 'Nov 20', 'Wednesday, November 18'],
    ['ja', '15:30', 'Nov 20', 'Wednesday, November 18'],
    ['ar-EG', '3:30 PM', 'Nov 20', 'Wednesday, November 18'],
  ])("for a reader of %s, words are English and the clock is the reader's", (locale, ...texts) => {
    const [clock, date, day] = texts
    expect(toClockTime(NOW, locale).replace(/\s/, ' ')).toBe(clock)
    expect(toDayAndMonth(NOW, locale)).toBe(date)
    expect(toDayName(ago(48 * 60), NOW, locale).replace(/(day)(?!,)/, '$1,')).toBe(day)
    expect(toShortTime(ago(3), NOW, locale)).toBe('3m')
    expect(toTimeAgo(ago(3), NOW, locale)).toBe('3m ago')
    expect(toRangeName(NOW, NOW + 60_000, locale)).toContain('Nov')
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

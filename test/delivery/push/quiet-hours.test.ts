import { describe, expect, test } from 'bun:test'
import { isInQuietHours, parseTimeOfDay } from '../../../src/delivery/push/quiet-hours.ts'

const hours = (from: string, to: string, timeZone: string) => ({
  from: parseTimeOfDay(from)!,
  to: parseTimeOfDay(to)!,
  timeZone,
})
const NIGHT = hours('22:00', '07:00', 'Europe/Berlin')
const LEAP = hours('02:30', '03:30', 'Europe/Berlin')
const EARLY = hours('01:00', '02:30', 'America/New_York')

describe('delivery: quiet hours follow the local clock', () => {
  test.each([
    // Berlin is an hour ahead of UTC in winter, two in summer.
    [NIGHT, '2026-01-10T20:59:59.999Z', false],
    [NIGHT, '2026-01-10T21:00:00Z', true],
    [NIGHT, '2026-01-11T05:59:59.999Z', true],
    [NIGHT, '2026-01-11T06:00:00Z', false],
    [NIGHT, '2026-07-11T04:59:00Z', true],
    [NIGHT, '2026-07-11T05:00:00Z', false],
    // The night of 29 March is an hour shorter: clocks go from 2:00 to 3:00 at 1:00 UTC.
    [NIGHT, '2026-03-29T04:59:00Z', true],
    [NIGHT, '2026-03-29T05:00:00Z', false],
    // The night of 25 October is an hour longer: clocks go from 3:00 to 2:00 at 1:00 UTC.
    [NIGHT, '2026-10-25T05:59:00Z', true],
    [NIGHT, '2026-10-25T06:00:00Z', false],
    // A start that the clock skips: quiet from 3:00 on.
    [LEAP, '2026-03-29T00:59:59Z', false],
    [LEAP, '2026-03-29T01:00:00Z', true],
    [LEAP, '2026-03-29T01:29:00Z', true],
    [LEAP, '2026-03-29T01:30:00Z', false],
    // A time that occurs twice is quiet twice.
    [LEAP, '2026-10-25T00:30:00Z', true],
    [LEAP, '2026-10-25T01:15:00Z', false],
    [LEAP, '2026-10-25T01:30:00Z', true],
    [LEAP, '2026-10-25T02:30:00Z', false],
    // New York: 2:00 is 1:00 on 1 November 2026, at 6:00 UTC.
    [EARLY, '2026-11-01T05:00:00Z', true],
    [EARLY, '2026-11-01T06:00:00Z', true],
    [EARLY, '2026-11-01T07:29:00Z', true],
    [EARLY, '2026-11-01T07:30:00Z', false],
    // Zones with half hours and quarters, beyond the date line, and midnight itself.
    [hours('12:00', '13:00', 'Asia/Kathmandu'), '2026-01-01T06:15:00Z', true],
    [hours('00:00', '00:01', 'Pacific/Kiritimati'), '2026-01-01T10:00:00Z', true],
    [hours('00:00', '00:01', 'UTC'), '2026-01-01T00:00:59Z', true],
    [hours('00:00', '00:01', 'UTC'), '2026-01-01T00:01:00Z', false],
    [hours('23:59', '00:00', 'UTC'), '2026-01-01T23:59:00Z', true],
    [hours('23:59', '00:00', 'UTC'), '2026-01-01T00:00:00Z', false],
  ])('%j at %s: %p', (quiet, now, expected) => {
    expect(isInQuietHours(quiet, new Date(now))).toBe(expected)
  })
})

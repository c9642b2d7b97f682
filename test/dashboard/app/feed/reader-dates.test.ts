import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseSearch } from '../../../../src/log/events/search-query.ts'
import {
  isStartOfDay,
  parseTyped,
  toExactText,
  toReaderText,
} from '../../../../src/dashboard/app/feed/reader-dates.ts'

const formerZone = process.env['TZ'] ?? 'UTC'
afterAll(() => {
  process.env['TZ'] = formerZone
})

/** Runs `work` as in a browser of a time zone. */
function within<Result>(zone: string, work: () => Result): Result {
  process.env['TZ'] = zone
  try {
    return work()
  } finally {
    process.env['TZ'] = formerZone
  }
}

describe('dashboard.md §4 dates are those of the reader', () => {
  test.each([
    ['Europe/Berlin', '2026-01-01', '2025-12-31T23:00Z'],
    ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15Z'],
    ['Pacific/Apia', '2026-01-01', '2025-12-31T11:00Z'],
    ['UTC', '2026-01-01', '2026-01-01T00:00Z'],
    // Days of 23 and of 25 hours.
    ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00Z'],
    ['Europe/Berlin', '2026-03-30', '2026-03-29T22:00Z'],
    ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00Z'],
    ['Europe/Berlin', '2026-10-26', '2026-10-25T23:00Z'],
    // The day begins at one o'clock: midnight does not exist.
    ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00Z'],
    // Midnight is there twice.
    ['America/Havana', '2026-11-01', '2026-11-01T04:00Z'],
    ['Europe/Berlin', '2026-01-01T10:00', '2026-01-01T09:00Z'],
    ['Europe/Berlin', '2026-01-01T10:00:05.25', '2026-01-01T09:00:05.250Z'],
    ['Europe/Berlin', '20260101T1000', '2026-01-01T09:00Z'],
    // The clock leaves this time out, and shows this one twice.
    ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30Z'],
    ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30Z'],
    ['Europe/Berlin', '2026-01-01T10:00+05:00', '2026-01-01T05:00Z'],
    ['Europe/Berlin', '0100-06-01', '0100-05-31T23:06:32Z'],
  ])('in %s, %s is %s', (zone, date, exact) => {
    within(zone, () => {
      expect(toExactText(`x -after:${date} tag:y`)).toBe(`x -after:${exact} tag:y`)
      expect(toExactText(toReaderText(`before:${exact}`))).toBe(`before:${exact}`)
      expect(parseTyped(`after:${date}`)).toMatchObject({
        filters: { after: Date.parse(exact) },
        issues: [],
      })
    })
  })

  test.each([
    ['Europe/Berlin', '2025-12-31T23:00Z', '2026-01-01'],
    ['America/Sao_Paulo', '2018-11-04T03:00Z', '2018-11-04'],
    ['Europe/Berlin', '2026-01-01T00:00Z', '2026-01-01T01:00'],
    ['Europe/Berlin', '2026-01-01', '2026-01-01T01:00'],
    ['Europe/Berlin', '"2026-01-01 09:00:05Z"', '2026-01-01T10:00:05'],
    // The first and the second half past two.
    ['Europe/Berlin', '2026-10-25T00:30Z', '2026-10-25T02:30'],
    ['Europe/Berlin', '2026-10-25T01:30Z', '2026-10-25T01:30Z'],
  ])('in %s, %s reads %s', (zone, exact, shown) => {
    within(zone, () =>
      expect(toReaderText(`a after:${exact} -before:2h`)).toBe(`a after:${shown} -before:2h`),
    )
  })

  test.each(['Europe/Berlin', 'Pacific/Apia', 'America/Havana'])(
    'today and yesterday begin in %s',
    zone => {
      within(zone, () => {
        const today = parseTyped('after:Today').filters.after ?? 0
        const yesterday = parseTyped('after:yesterday').filters.after ?? 0
        expect(isStartOfDay(today) && isStartOfDay(yesterday)).toBe(true)
        expect(new Date(today).toDateString()).toBe(new Date().toDateString())
        expect(Math.round((today - yesterday) / 86_400_000)).toBe(1)
        expect(toExactText('after:today')).toBe(
          `after:${new Date(today).toISOString().slice(0, 16)}Z`,
        )
      })
    },
  )

  test('the first moment of a day is its start, also without a midnight', () => {
    within('America/Sao_Paulo', () => {
      expect(isStartOfDay(Date.parse('2018-11-04T03:00Z'))).toBe(true)
      expect(isStartOfDay(Date.parse('2018-11-04T04:00Z'))).toBe(false)
      expect(isStartOfDay(Date.parse('2018-11-05T02:00Z'))).toBe(true)
    })
  })

  test.each([
    ['2026-02-30', 'date'],
    ['2026-13-01T10:00', 'date'],
    ['0099-01-01', 'date'],
    ['2026-01-01T25:00', 'time'],
    ['2026-01-01T10:00[Europe/Paris]', 'time'],
    ['20260101', 'time'],
    ['9999-12-31T23:00', 'time'],
  ] as const)('%s stays as it is, with the problem "%s"', (date, problem) => {
    within('America/Sao_Paulo', () => {
      expect(toExactText(`x after:${date}`)).toBe(`x after:${date}`)
      expect(parseTyped(`x after:${date}`).issues).toMatchObject([{ problem, path: ['after'] }])
    })
  })

  test('a search keeps its times when it is shown and sent again, in every zone', () => {
    const zones = [
      'UTC',
      'Europe/Berlin',
      'America/Sao_Paulo',
      'Australia/Lord_Howe',
      'Pacific/Apia',
    ]
    const time = fc.date({
      min: new Date('0101-01-01T00:00Z'),
      max: new Date('9998-12-31T00:00Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(fc.constantFrom(...zones), time, time, (zone, one, other) => {
        const text = `(after:${one.toISOString()} OR "after:2026-01-01") -before:${other.toISOString()}`
        const again = within(zone, () => toExactText(toReaderText(text)))
        expect(parseSearch(again).filters).toEqual(parseSearch(text).filters)
      }),
      { numRuns: 500 },
    )
  })
})

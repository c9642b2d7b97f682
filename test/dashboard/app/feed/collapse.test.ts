import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { collapse, countRows, type Entry } from '../../../../src/dashboard/app/feed/collapse.ts'
import type { Row } from '../../../../src/dashboard/app/feed/log.ts'

// The start of a period and of a second.
const START_MS = Date.UTC(2026, 10, 20, 10)

const row = (seq: number, receivedMs: number, more: Partial<Row> = {}): Row => ({
  ...{ seq, id: `evt_${seq}`, channelId: 'chn_1', channelName: 'orders', title: 'Order placed' },
  ...{ description: null, icon: null, userId: null, source: 'api', tags: [] },
  ...{ atMs: receivedMs, receivedMs },
  ...more,
})

/** Rows that arrived at these times after the start, newest first. */
const arrive = (times: readonly number[], toMore: (at: number) => Partial<Row> = () => ({})) =>
  times.map((ms, at) => row(at + 1, START_MS + ms, toMore(at))).reverse()

/** `count` times within the second that begins at `fromMs`. */
const within = (fromMs: number, count: number) =>
  Array.from({ length: count }, (_, at) => fromMs + Math.floor((at * 1_000) / count))

const toSeqs = (entries: readonly Entry<Row>[]) =>
  entries.map(({ rows }) => rows.map(({ seq }) => seq))

describe('dashboard.md: above five a second, equal titles collapse', () => {
  test('six within a second are one entry, and five are five', () => {
    expect(toSeqs(collapse(arrive(within(0, 6))))).toEqual([[6, 5, 4, 3, 2, 1]])
    expect(collapse(arrive(within(0, 5)))).toHaveLength(5)
    // In two seconds, each of which is calm.
    expect(collapse(arrive([...within(0, 5), ...within(1_000, 5)]))).toHaveLength(10)
  })

  test('a sustained burst has one entry for each five seconds, and its first ones collapse, too', () => {
    const times = Array.from({ length: 101 }, (_, at) => at * 100)
    const groups = toSeqs(collapse(arrive(times)))
    expect(groups.map(({ length }) => length)).toEqual([1, 50, 50])
    expect(toSeqs(collapse(arrive(times.slice(0, 53))))[0]).toEqual([53, 52, 51])
  })

  test('only the same title and level in the same channel, and other events stay between', () => {
    const entries = collapse(
      arrive(
        within(0, 8),
        at =>
          [{}, { title: 'Refund' }, { channelId: 'chn_2' }, { level: 'critical' } as const][
            at % 4
          ]!,
      ),
    )
    expect(toSeqs(entries)).toEqual([
      [8, 4],
      [7, 3],
      [6, 2],
      [5, 1],
    ])
    const alone = collapse(arrive(within(0, 7), at => (at === 3 ? { title: 'Alone' } : {})))
    expect(toSeqs(alone)).toEqual([[4], [7, 6, 5, 3, 2, 1]])
  })

  test('events that happened at other times do not collapse, as those of an import', () => {
    const imported = arrive(within(0, 20), at => ({ atMs: START_MS - at * 3_600_000 }))
    expect(collapse(imported)).toHaveLength(20)
    const slow = arrive(within(0, 20), () => ({ atMs: START_MS - 180_000 }))
    expect(collapse(slow)).toHaveLength(1)
  })

  test('a deletion counts down, an undo counts up, and the group keeps its key and place', () => {
    const rows = arrive(within(0, 12), at => (at % 4 === 3 ? { title: `Other ${at}` } : {}))
    const before = collapse(rows)
    const index = before.findIndex(({ rows }) => rows.length === 9)
    for (const gone of before[index]!.rows) {
      const after = collapse(rows.filter(one => one !== gone))
      const group = after.find(({ key }) => key === before[index]!.key)!
      expect(group.rows).toEqual(before[index]!.rows.filter(one => one !== gone))
      expect(after.filter(one => one !== group).map(({ key }) => key)).toEqual(
        before.filter((_, at) => at !== index).map(({ key }) => key),
      )
    }
    expect(collapse(rows)).toEqual(before)
  })

  test('no row is lost or repeated, and the order is kept, in random arrivals', () => {
    const arrivals = fc.array(
      fc.record({
        pauseMs: fc.oneof(fc.nat(50), fc.nat(400), fc.nat(8_000)),
        title: fc.constantFrom('Order placed', 'Refund', 'a b', 'a'),
        channelId: fc.constantFrom('chn_1', 'chn_2', 'b chn_1'),
        delayMs: fc.constantFrom(0, 0, 0, 90_000),
      }),
      { maxLength: 120 },
    )
    fc.assert(
      fc.property(arrivals, fc.nat(4_999), fc.nat(120), (all, startMs, most) => {
        let ms = startMs
        const rows = arrive(
          all.map(({ pauseMs }) => (ms += pauseMs)),
          at => ({
            title: all[at]!.title,
            channelId: all[at]!.channelId,
            atMs: START_MS - all[at]!.delayMs,
          }),
        )
        const entries = collapse(rows)
        // Each row once, and newest first within a group.
        expect(
          entries.flatMap(entry => entry.rows).sort((one, other) => other.seq - one.seq),
        ).toEqual(rows)
        for (const { rows } of entries)
          for (const [at, { seq }] of rows.slice(1).entries())
            expect(seq).toBeLessThan(rows[at]!.seq)
        const oldest = entries.map(({ rows }) => rows.at(-1)!.seq)
        expect(oldest).toEqual([...oldest].sort((one, other) => other - one))
        expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length)
        for (const { rows } of entries) {
          const period = (one: Row) => Math.floor(one.receivedMs / 5_000)
          expect(new Set(rows.map(one => JSON.stringify([one.title, one.channelId]))).size).toBe(1)
          expect(new Set(rows.map(period)).size).toBe(1)
        }
        // Rows that come later keep the others in their order.
        const before = collapse(rows.slice(most)).map(({ key }) => key)
        const after = entries.map(({ key }) => key)
        expect(after.filter(key => before.includes(key))).toEqual(
          before.filter(key => after.includes(key)),
        )
        const fitting = rows.slice(0, countRows(rows, most))
        expect(fitting.length === rows.length || countRows(rows, most + 1) > fitting.length).toBe(
          true,
        )
      }),
    )
  })
})

describe('the rows that fit into a number of entries', () => {
  test('are all rows of a group, or that many different ones', () => {
    expect(countRows(arrive(within(0, 300)), 1)).toBe(300)
    const different = arrive(within(0, 300), at => ({ title: `Event ${at}` }))
    expect(countRows(different, 200)).toBe(200)
    const mixed = arrive(within(0, 300), at => (at % 3 === 0 ? { title: `Event ${at}` } : {}))
    // The newest 11 rows have the common title and 3 others.
    expect(countRows(mixed, 4)).toBe(11)
  })
})

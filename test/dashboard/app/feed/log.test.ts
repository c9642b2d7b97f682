import { describe, expect, test } from 'bun:test'
import {
  EMPTY,
  LIVE_ENTRIES,
  MAX_LIVE_ROWS,
  MAX_ROWS,
  MAX_WAITING,
  reduce,
  toNewest,
  toRow,
  type Log,
  type LogAction,
  type NewestPage,
  type Row,
} from '../../../../src/dashboard/app/feed/log.ts'

const row = (seq: number): Row => ({
  seq,
  id: `evt_${seq}`,
  channelId: 'chn_1',
  channelName: 'payments',
  title: `Event ${seq}`,
  description: null,
  icon: null,
  userId: null,
  source: 'api',
  tags: [],
  ...{ atMs: seq, receivedMs: seq },
})
/** Returns rows from one seq down to another, newest first. */
const rows = (newest: number, oldest: number) =>
  Array.from({ length: newest - oldest + 1 }, (_, at) => row(newest - at))
const seqs = (some: readonly Row[]) => some.map(({ seq }) => seq)
const page = (newest: number, oldest: number, nextCursor: string | null = 'on') => ({
  items: rows(newest, oldest),
  nextCursor,
})

const after = (log: Log, ...actions: LogAction[]) => actions.reduce(reduce, log)
const SHOW: LogAction = { type: 'show' }
const REQUEST: LogAction = { type: 'request' }
const newest = (page: NewestPage): LogAction => ({ type: 'newest', page })
const arrive = (...some: Row[]): LogAction => ({ type: 'arrive', rows: some })
const remove = (seq: number): LogAction => ({ type: 'delete', seq })
const load = (log: Log, page: NewestPage) => after(log, REQUEST, newest(page))
const extend = (log: Log, page: NewestPage) =>
  after(log, REQUEST, { type: 'older', page, after: log.older })

describe('the log of a reader', () => {
  test('accepts rows in any order, each seq once, newest first', () => {
    const log = after(
      load(EMPTY, page(3, 1)),
      arrive(row(5), row(4), row(3)),
      arrive(row(7), row(5)),
    )
    expect([seqs(log.rows), seqs(log.waiting), toNewest(log)]).toEqual([[3, 2, 1], [7, 5, 4], 7])
    expect(seqs(after(log, SHOW).rows)).toEqual([7, 5, 4, 3, 2, 1])
  })

  test('keeps 200 rows while it is live, and records that it was cut', () => {
    const log = after(load(EMPTY, page(150, 1)), arrive(...rows(230, 151)), SHOW)
    expect([log.rows.length, log.rows[0]?.seq, log.rows.at(-1)?.seq]).toEqual([
      LIVE_ENTRIES,
      230,
      31,
    ])
    expect(log.older).toEqual({ kind: 'cut' })
  })

  test('counts equal rows that collapse as one, up to 1,000 rows', () => {
    const equal = (newest: number, oldest: number) =>
      rows(newest, oldest).map(row => ({ ...row, title: 'Paid', receivedMs: 0, atMs: 0 }))
    const log = after(load(EMPTY, page(150, 1)), arrive(...equal(900, 151)), SHOW)
    expect([log.rows.length, log.older]).toEqual([900, { kind: 'more', cursor: 'on' }])
    const more = after(log, arrive(...equal(1_200, 901)), SHOW)
    expect([more.rows.length, more.rows.at(-1)?.seq, more.floor]).toEqual([MAX_LIVE_ROWS, 201, 201])
    expect(more.older).toEqual({ kind: 'cut' })
  })

  test('stays the same object if nothing changes', () => {
    const log = load(EMPTY, page(50, 1))
    expect(after(log, SHOW, remove(99))).toBe(log)
  })

  test('limits the waiting rows; beyond the limit nothing with a hole is shown', () => {
    let log = load(EMPTY, page(10, 1))
    for (let seq = 11; seq <= 11 + MAX_WAITING; seq++) log = after(log, arrive(row(seq)))
    expect(log.waiting).toHaveLength(MAX_WAITING)
    const shown = after(log, SHOW)
    expect(shown.rows).toHaveLength(LIVE_ENTRIES)
    expect(shown.rows.at(-1)?.seq).toBe(12 + MAX_WAITING - LIVE_ENTRIES)
    expect([shown.older.kind, shown.gapEnd]).toEqual(['cut', 0])
  })

  test('appends older rows without duplicates', () => {
    const log = extend(load(EMPTY, page(10, 6)), page(7, 3))
    expect(seqs(log.rows)).toEqual([10, 9, 8, 7, 6, 5, 4, 3])
    expect(extend(log, page(2, 1, null)).older).toEqual({ kind: 'end' })
  })

  test('shows the first rows that come after empty pages', () => {
    const searched = load(EMPTY, { items: [], nextCursor: 'on' })
    const found = extend(searched, page(9, 8))
    expect([seqs(found.rows), seqs(found.waiting), toNewest(found)]).toEqual([[9, 8], [], 9])
    const live = extend(after(searched, arrive(row(12))), page(9, 8, null))
    expect([seqs(live.rows), seqs(live.waiting)]).toEqual([[9, 8], [12]])
  })

  test('drops an older page if rows were dropped since it was requested', () => {
    const log = load(EMPTY, page(300, 251))
    const cut = after(log, REQUEST, arrive(...rows(500, 301)), SHOW)
    const answered = after(cut, { type: 'older', page: page(250, 201), after: log.older })
    expect([answered.rows, answered.requests]).toEqual([cut.rows, 0])
  })

  test('stops at the maximum number of rows for a browser', () => {
    const log = extend(load(EMPTY, page(MAX_ROWS + 10, 50)), page(49, 1))
    expect(log.older).toEqual({ kind: 'full' })
  })

  test('catches up with a page that overlaps it', () => {
    const log = after(load(load(EMPTY, page(10, 1, null)), page(12, 5)), SHOW)
    expect(seqs(log.rows)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    expect(log.older).toEqual({ kind: 'end' })
  })

  test('drops rows that a page does not reach: a hole is never hidden', () => {
    const log = after(load(load(EMPTY, page(10, 1)), page(90, 41)), SHOW)
    expect([log.rows[0]?.seq, log.rows.at(-1)?.seq]).toEqual([90, 41])
    expect(log.older).toEqual({ kind: 'cut' })
  })

  test('an empty log becomes the page, preceded by newer rows', () => {
    const log = after(EMPTY, REQUEST, arrive(row(4), row(3)), newest(page(3, 1, null)))
    expect([seqs(log.rows), seqs(log.waiting)]).toEqual([[3, 2, 1], [4]])
  })

  test('a page decides about what it covers, except for what has changed since the request', () => {
    // The log missed the deletion of 9, and has not decided about 7. A page without a newer change
    // of 10 and 8 is on its way.
    const log = after(load(EMPTY, page(6, 1)), arrive(row(8), row(9)), SHOW, REQUEST)
    const changed = after(log, arrive(row(10)), remove(8))
    const loaded = after(changed, newest({ items: [row(8), row(7), row(6)], nextCursor: 'on' }))
    expect(seqs(after(loaded, SHOW).rows)).toEqual([10, 7, 6, 5, 4, 3, 2, 1])
    expect([loaded.requests, loaded.changed.size]).toEqual([0, 0])
  })

  test('changes are remembered until the last request has ended', () => {
    const log = after(
      EMPTY,
      REQUEST,
      REQUEST,
      remove(2),
      { type: 'fail' },
      newest(page(3, 1, null)),
    )
    expect([seqs(log.rows), log.changed.size]).toEqual([[3, 1], 0])
    const broken = after(load(EMPTY, page(3, 1)), REQUEST, remove(2), { type: 'reset' })
    expect(seqs(after(broken, newest(page(3, 1, null))).rows)).toEqual([3, 1])
  })

  test('a deleted row disappears from every place, and is restored there', () => {
    const full = after(load(EMPTY, page(3, 1, null)), arrive(row(4), row(5)))
    const less = after(full, remove(2), remove(3), remove(5))
    expect([seqs(less.rows), seqs(less.waiting)]).toEqual([[1], [4]])
    const restored = after(less, arrive(row(5)), arrive(row(3)), arrive(row(2)))
    expect([seqs(restored.rows), seqs(restored.waiting)]).toEqual([
      [3, 2, 1],
      [5, 4],
    ])
  })

  test('the oldest loaded row is restored, and an older one comes with its page', () => {
    const log = after(load(EMPTY, page(10, 8)), remove(8), arrive(row(8)), arrive(row(7)))
    expect(seqs(log.rows)).toEqual([10, 9, 8])
    expect(seqs(extend(log, page(7, 6)).rows)).toEqual([10, 9, 8, 7, 6])
  })

  test('a row has the start of a description, without a half character', () => {
    const times = { timestamp: '2026-11-20T10:00:00Z', createdAt: '2026-11-20T10:00:00Z' }
    const preview = (description: string) =>
      toRow({ ...row(1), ...times, tags: ['a', ' '], metadata: {}, notify: true, description })
    const start = 'x'.repeat(278)
    for (const whole of ['😀', '👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301\u0323', '\u1100\u1161\u11a8'])
      expect(preview(`${start}a${whole}b`).description).toBe(`${start}a…`)
    expect(preview(`${start}😀`).description).toBe(`${start}😀`)
    expect(preview('').description).toBe('')
    const zalgo = preview(`a${'\u0301'.repeat(5_000)}`).description
    expect(zalgo).toBe(`a${'\u0301'.repeat(279)}…`)
    expect(preview('').tags).toEqual(['a'])
  })

  test('a row keeps the shown parts of an event, whatever its size', () => {
    const made = toRow({
      ...row(1),
      timestamp: '2026-11-20T10:00:00.000Z',
      createdAt: '2026-11-20T10:00:00.000Z',
      description: 'x'.repeat(5_000),
      metadata: { large: 'x'.repeat(60_000) },
      tags: ['a'],
      notify: true,
    })
    expect(JSON.stringify(made).length).toBeLessThan(600)
    expect(made.atMs).toBe(Date.UTC(2026, 10, 20, 10))
  })
})

import { describe, expect, test } from 'bun:test'
import {
  EMPTY,
  LIVE_ENTRIES,
  MAX_LIVE_ROWS,
  MAX_ROWS,
  MAX_WAITING,
  reduce,
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
    expect(after(log, SHOW)).toBe(log)
    expect(after(log, remove(99)).rows).toBe(log.rows)
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

  test('drops rows that a page does not reach: a hole is never hidden', () => {
    const log = after(load(load(EMPTY, page(10, 1)), page(90, 41)), SHOW)
    expect([log.rows[0]?.seq, log.rows.at(-1)?.seq]).toEqual([90, 41])
    expect(log.older).toEqual({ kind: 'cut' })
  })

  test('a row has the start of a description, without a half character', () => {
    const times = { timestamp: '2026-11-20T10:00:00Z', createdAt: '2026-11-20T10:00:00Z' }
    const preview = (description: string) =>
      toRow({
        ...row(1),
        ...times,
        tags: ['a\u202e', ' '],
        metadata: { large: 'x'.repeat(9_000) },
        notify: true,
        description,
      })
    const { description, tags } = preview('\u202ereversed\nlines')
    expect([description, tags]).toEqual(['reversed\nlines', ['a']])
    const start = 'x'.repeat(278)
    for (const whole of ['😀', '👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301\u0323', '\u1100\u1161\u11a8'])
      expect(preview(`${start}a${whole}b`).description).toBe(`${start}a…`)
    expect(preview(`${start}😀`).description).toBe(`${start}😀`)
    expect(preview('').description).toBe('')
    const zalgo = preview(`a${'\u0301'.repeat(5_000)}`).description
    expect(zalgo).toBe(`a${'\u0301'.repeat(279)}…`)
    expect(preview('').tags).toEqual(['a'])
    expect(JSON.stringify(preview('x'.repeat(5_000))).length).toBeLessThan(600)
  })
})

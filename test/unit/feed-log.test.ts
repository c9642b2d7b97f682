import { describe, expect, test } from 'bun:test'
import {
  arrive,
  catchUp,
  EMPTY,
  extend,
  fromPage,
  LIVE_ROWS,
  MAX_ROWS,
  MAX_WAITING,
  remove,
  restore,
  show,
  toRow,
  type Log,
  type Row,
} from '../../src/dashboard/app/feed/log.ts'

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

describe('the log of a reader', () => {
  test('accepts rows in any order, each seq once, newest first', () => {
    const log = arrive(arrive(fromPage(page(3, 1)), [row(5), row(4), row(3)]), [row(7), row(5)])
    expect([seqs(log.rows), seqs(log.waiting)]).toEqual([
      [3, 2, 1],
      [7, 5, 4],
    ])
    expect(seqs(show(log).rows)).toEqual([7, 5, 4, 3, 2, 1])
  })

  test('keeps 200 rows while it is live, and records that it was cut', () => {
    const log = show(arrive(fromPage(page(150, 1)), rows(230, 151)))
    expect([log.rows.length, log.rows[0]?.seq, log.rows.at(-1)?.seq]).toEqual([LIVE_ROWS, 230, 31])
    expect(log.older).toEqual({ kind: 'cut' })
  })

  test('stays the same object if nothing changes', () => {
    const log = fromPage(page(50, 1))
    expect(show(log)).toBe(log)
  })

  test('limits the waiting rows; beyond the limit nothing with a hole is shown', () => {
    let log = fromPage(page(10, 1))
    for (let seq = 11; seq <= 11 + MAX_WAITING; seq++) log = arrive(log, [row(seq)])
    expect(log.waiting).toHaveLength(MAX_WAITING)
    const shown = show(log)
    expect(shown.rows).toHaveLength(LIVE_ROWS)
    expect(shown.rows.at(-1)?.seq).toBe(12 + MAX_WAITING - LIVE_ROWS)
    expect(shown.older.kind).toBe('cut')
    expect(shown.hasGap).toBe(false)
  })

  test('appends older rows without duplicates', () => {
    const log = extend(fromPage(page(10, 6)), page(7, 3))
    expect(seqs(log.rows)).toEqual([10, 9, 8, 7, 6, 5, 4, 3])
    expect(extend(log, page(2, 1, null)).older).toEqual({ kind: 'end' })
  })

  test('stops at the maximum number of rows for a browser', () => {
    const log = extend(fromPage(page(MAX_ROWS + 10, 50)), page(49, 1))
    expect(log.older).toEqual({ kind: 'full' })
  })

  test('catches up with a page that overlaps it', () => {
    const log = show(catchUp(fromPage(page(10, 1, null)), page(12, 5)))
    expect(seqs(log.rows)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    expect(log.older).toEqual({ kind: 'end' })
  })

  test('drops rows that a page does not reach: a hole is never hidden', () => {
    const log = show(catchUp(fromPage(page(10, 1)), page(90, 41)))
    expect([log.rows[0]?.seq, log.rows.at(-1)?.seq]).toEqual([90, 41])
    expect(log.older).toEqual({ kind: 'cut' })
  })

  test('an empty log becomes the page, preceded by newer rows', () => {
    const log = catchUp(arrive(EMPTY, [row(4), row(3)]), page(3, 1, null))
    expect([seqs(log.rows), seqs(log.waiting)]).toEqual([[3, 2, 1], [4]])
  })

  test('a deleted row disappears from every place, and is restored there', () => {
    const full: Log = arrive(fromPage(page(3, 1, null)), [row(4)])
    const less = remove(remove(full, 2), 4)
    expect([seqs(less.rows), seqs(less.waiting)]).toEqual([[3, 1], []])
    expect(seqs(show(restore(less, 2)).rows)).toEqual([3, 2, 1])
    expect(restore(less, 99)).toBe(less)
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

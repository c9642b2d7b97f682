import type { Event } from '../../../events/schema.ts'

/** The fields of an event that a row shows. Metadata may be large and is left out. */
export interface Row extends Pick<
  Event,
  | 'id'
  | 'seq'
  | 'channelId'
  | 'channelName'
  | 'title'
  | 'description'
  | 'icon'
  | 'userId'
  | 'source'
> {
  tags: readonly string[]
  /** When the event happened. */
  atMs: number
  /** When the server received the event. It never decreases with `seq`. */
  receivedMs: number
}

/** How to load older rows. */
export type Older =
  | { kind: 'more'; cursor: string }
  | { kind: 'end' }
  /** Rows were dropped, so no cursor continues the list. */
  | { kind: 'cut' }
  /** The list has `MAX_ROWS`. */
  | { kind: 'full' }

/** The loaded part of a project's log: newest first, each seq once. */
export interface Log {
  rows: readonly Row[]
  /** Rows newer than `rows` that are not shown yet. */
  waiting: readonly Row[]
  /** True if rows are missing between `waiting` and `rows`. */
  hasGap: boolean
  older: Older
  /** Recently deleted rows, the latest first, so that a deletion can be undone. */
  removed: readonly Row[]
}

export interface NewestPage {
  items: readonly Row[]
  nextCursor: string | null
}

export const LIVE_ROWS = 200
export const MAX_WAITING = 1_000
export const MAX_ROWS = 5_000
const MAX_REMOVED = 100
const MAX_DESCRIPTION = 280

export const EMPTY: Log = {
  rows: [],
  waiting: [],
  hasGap: false,
  older: { kind: 'end' },
  removed: [],
}

export function toRow(event: Event): Row {
  const { id, seq, channelId, channelName, title, icon, userId, source, tags } = event
  return {
    ...{ id, seq, channelId, channelName, title, icon, userId, source, tags },
    description: event.description?.slice(0, MAX_DESCRIPTION) ?? null,
    atMs: Date.parse(event.timestamp),
    receivedMs: Date.parse(event.createdAt),
  }
}

/** A log with the newest page only. */
export function fromPage({ items, nextCursor }: NewestPage): Log {
  return { ...EMPTY, rows: items, older: toOlder(nextCursor) }
}

/** Adds received rows, in any order, to `waiting`. Drops the oldest beyond `MAX_WAITING`. */
export function arrive(log: Log, arrived: readonly Row[]): Log {
  const newest = log.rows[0]?.seq ?? 0
  const waiting = union(
    arrived.filter(({ seq }) => seq > newest),
    log.waiting,
  )
  if (waiting.length <= MAX_WAITING) return { ...log, waiting }
  return { ...log, waiting: waiting.slice(0, MAX_WAITING), hasGap: true }
}

/** Adds the newest page. There is a gap if it does not reach the newest row. */
export function catchUp(log: Log, page: NewestPage): Log {
  const newest = log.rows[0]?.seq
  if (newest === undefined) return arrive(fromPage(page), log.waiting)
  const touches = page.nextCursor === null || page.items.some(({ seq }) => seq <= newest)
  return { ...arrive(log, page.items), hasGap: log.hasGap || !touches }
}

/** Moves `waiting` to `rows` and drops rows beyond `LIVE_ROWS`. */
export function show(log: Log): Log {
  const { rows, waiting, hasGap } = log
  if (waiting.length === 0 && rows.length <= LIVE_ROWS) return log
  const all = hasGap ? waiting : [...waiting, ...rows]
  const isCut = hasGap || all.length > LIVE_ROWS
  return {
    ...log,
    rows: isCut ? all.slice(0, LIVE_ROWS) : all,
    waiting: [],
    hasGap: false,
    older: isCut ? { kind: 'cut' } : log.older,
  }
}

/** Adds a page of older rows. */
export function extend(log: Log, { items, nextCursor }: NewestPage): Log {
  const oldest = log.rows.at(-1)?.seq ?? Infinity
  const rows = [...log.rows, ...items.filter(({ seq }) => seq < oldest)]
  return { ...log, rows, older: rows.length < MAX_ROWS ? toOlder(nextCursor) : { kind: 'full' } }
}

export function remove(log: Log, seq: number): Log {
  const isOther = (row: Row) => row.seq !== seq
  const removed = [...log.rows, ...log.waiting].filter(row => !isOther(row))
  return {
    ...log,
    rows: log.rows.filter(isOther),
    waiting: log.waiting.filter(isOther),
    removed: [...removed, ...log.removed].slice(0, MAX_REMOVED),
  }
}

/** Restores a removed row if it lies within the loaded part. */
export function restore(log: Log, seq: number): Log {
  const row = log.removed.find(row => row.seq === seq)
  if (!row) return log
  const removed = log.removed.filter(other => other !== row)
  const oldest = log.rows.at(-1)?.seq ?? 0
  if (seq < oldest && log.older.kind !== 'end') return { ...log, removed }
  return { ...log, rows: union([row], log.rows), removed }
}

function toOlder(nextCursor: string | null): Older {
  return nextCursor === null ? { kind: 'end' } : { kind: 'more', cursor: nextCursor }
}

function union(some: readonly Row[], others: readonly Row[]): Row[] {
  const bySeq = new Map([...some, ...others].map(row => [row.seq, row]))
  return [...bySeq.values()].sort((one, other) => other.seq - one.seq)
}

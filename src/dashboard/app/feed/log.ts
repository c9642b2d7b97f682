import type { Event } from '../../../events/schema.ts'

/** What a row shows of an event; its metadata may be large and is left to the event's own page. */
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
  atMs: number
}

/** Where reading on to older rows begins. */
export type Older =
  | { kind: 'more'; cursor: string }
  | { kind: 'end' }
  /** Rows were let go, and no cursor leads to the place. */
  | { kind: 'cut' }
  /** A browser holds no more. */
  | { kind: 'full' }

/** A part of a project's log as a reader sees it: newest first, each seq once. */
export interface Log {
  rows: readonly Row[]
  /** Newer than all rows, and not shown yet. */
  waiting: readonly Row[]
  /** Whether something is missing between `waiting` and `rows`. */
  hasGap: boolean
  older: Older
  /** Rows that were deleted a moment ago, the last one first: people may take it back. */
  removed: readonly Row[]
}

export interface NewestPage {
  items: readonly Row[]
  nextCursor: string | null
}

export const LIVE_ROWS = 200
export const MAX_WAITING = 1_000
export const MAX_ROWS = 5_000
const MOST_REMOVED = 100
const SHOWN_DESCRIPTION = 280

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
    description: event.description?.slice(0, SHOWN_DESCRIPTION) ?? null,
    atMs: Date.parse(event.timestamp),
  }
}

/** A log that begins with the newest page. */
export function fromPage({ items, nextCursor }: NewestPage): Log {
  return { ...EMPTY, rows: items, older: toOlder(nextCursor) }
}

/** Takes in what has arrived, in any order. Beyond a bound the oldest of what waits is let go. */
export function arrive(log: Log, arrived: readonly Row[]): Log {
  const newest = log.rows[0]?.seq ?? 0
  const waiting = union(
    arrived.filter(({ seq }) => seq > newest),
    log.waiting,
  )
  if (waiting.length <= MAX_WAITING) return { ...log, waiting }
  return { ...log, waiting: waiting.slice(0, MAX_WAITING), hasGap: true }
}

/** Takes in the newest page, which may begin later than the log ends. */
export function catchUp(log: Log, page: NewestPage): Log {
  const newest = log.rows[0]?.seq
  if (newest === undefined) return arrive(fromPage(page), log.waiting)
  const touches = page.nextCursor === null || page.items.some(({ seq }) => seq <= newest)
  return { ...arrive(log, page.items), hasGap: log.hasGap || !touches }
}

/** Shows what waits, and lets go of rows that nobody can see while the feed is live. */
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
    removed: [...removed, ...log.removed].slice(0, MOST_REMOVED),
  }
}

/** Puts back a row that was removed, if it still belongs among those that are loaded. */
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

import { takeStart, toVisible } from '../../../base/display-text.ts'
import type { Event } from '../../../log/events/schema.ts'
import type { EventPage } from '../../../log/events/search-schema.ts'
import { countRows } from './collapse.ts'

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
  | 'level'
  | 'state'
  | 'thread'
  | 'threadSeq'
> {
  tags: readonly string[]
  /** When the event happened. */
  atMs: number
  /** When the server received the event. It never decreases with `seq`. */
  receivedMs: number
}

/** How to load older rows. */
type Older =
  | { kind: 'more'; cursor: string }
  | { kind: 'end' }
  /** Rows were dropped, so no cursor continues the list. */
  | { kind: 'cut' }
  /** The list has `MAX_ROWS`. */
  | { kind: 'full' }

/**
 * The loaded part of a project's log. Its bounds are stored, because the rows at its ends can be
 * deleted and restored. Rows are newest first, each seq once. A row shows a thread: the shown and
 * the waiting rows each have the newest event of it alone.
 */
export interface Log {
  /** The shown rows: every match from `floor` to `head`. */
  rows: readonly Row[]
  /** The rows after `head`, which are not shown yet. */
  waiting: readonly Row[]
  head: number
  /** Infinity until a page was loaded. */
  floor: number
  /** Rows between `head` and this seq are missing; 0 if none are. */
  gapEnd: number
  older: Older
  /** How many requests for a page are on their way. */
  requests: number
  /**
   * The rows that arrived meanwhile, and undefined for a deleted one, by their seqs. A page may be
   * older than these changes.
   */
  changed: ReadonlyMap<number, Row | undefined>
  /** The event that was deleted last. */
  deleted: number
}

export type LogAction =
  /** Forgets all rows. */
  | { type: 'reset' }
  /** A request for a page replaces earlier ones. `newest`, `older` or `fail` ends it. */
  | { type: 'request' | 'fail' }
  /** The newest page. */
  | { type: 'newest'; page: NewestPage }
  /** The page that follows `after`, the `older` of the log at the time of the request. */
  | { type: 'older'; page: NewestPage; after: Older }
  /** New or restored rows, in any order. */
  | { type: 'arrive'; rows: readonly Row[] }
  | { type: 'delete'; seq: number }
  /** Moves `waiting` to `rows`, and drops rows beyond `LIVE_ENTRIES` and `MAX_LIVE_ROWS`. */
  | { type: 'show' }

export interface NewestPage {
  items: readonly Row[]
  nextCursor: string | null
}

/** Rows that collapse into one count as one entry. */
export const LIVE_ENTRIES = 200
export const MAX_LIVE_ROWS = 1_000
export const MAX_WAITING = 1_000
export const MAX_ROWS = 5_000
const MAX_DESCRIPTION = 280

export const EMPTY: Log = {
  rows: [],
  waiting: [],
  head: 0,
  floor: Infinity,
  gapEnd: 0,
  older: { kind: 'end' },
  requests: 0,
  changed: new Map(),
  deleted: 0,
}

export function toRow(event: EventPage['items'][number]): Row {
  const { metadata, isUnexamined, description, ...rest } = event
  return {
    ...rest,
    title: toVisibleTitle(event.title),
    // A tag of white space would be an empty chip.
    tags: event.tags.map(toVisible).filter(Boolean),
    description: isUnexamined ? 'Not examined' : description && toPreview(toVisible(description)),
    atMs: Date.parse(event.timestamp),
    receivedMs: Date.parse(event.createdAt),
  }
}

/** The title, or what is shown in its place. Servers up to 0.2.0 stored titles that nobody sees. */
export function toVisibleTitle(title: string): string {
  return toVisible(title) || 'No visible title'
}

function toPreview(description: string): string {
  const start = takeStart(description, MAX_DESCRIPTION)
  return start === description ? start : `${start}…`
}

/** Returns the log after `action`; the same object when nothing has changed. */
export function reduce(log: Log, action: LogAction): Log {
  const { requests, changed } = log
  switch (action.type) {
    case 'reset':
      return { ...EMPTY, requests, changed }
    case 'request':
      // Its page has all earlier changes, also those whose messages were lost.
      return { ...log, requests: requests + 1, changed: EMPTY.changed }
    case 'fail':
      return endRequest(log)
    case 'newest':
      return endRequest(addNewest(log, action.page))
    case 'older':
      return endRequest(action.after === log.older ? addOlder(log, action.page) : log)
    case 'arrive': {
      const changes = action.rows.map(row => [row.seq, row] as const)
      return place(note(log, changes), action.rows)
    }
    case 'delete': {
      const { seq: deleted } = action
      return filter({ ...note(log, [[deleted, undefined]]), deleted }, ({ seq }) => seq !== deleted)
    }
    case 'show':
      return show(log)
  }
}

/** The newest seq that a log has, or had. */
export function toNewest({ head, waiting }: Log): number {
  return Math.max(head, waiting[0]?.seq ?? 0)
}

function endRequest(log: Log): Log {
  const requests = log.requests - 1
  return { ...log, requests, changed: requests > 0 ? log.changed : EMPTY.changed }
}

function note(log: Log, changes: readonly (readonly [number, Row | undefined])[]): Log {
  return log.requests > 0 ? { ...log, changed: new Map([...log.changed, ...changes]) } : log
}

/** Adds rows to the part to which they belong. Rows outside of the loaded parts are left out. */
function place(log: Log, some: readonly Row[]): Log {
  const { head, floor, gapEnd, rows } = log
  const shown = some.filter(({ seq }) => floor <= seq && seq <= head)
  const late = some.filter(({ seq }) => seq > head)
  // Drops the oldest waiting rows beyond the limit.
  const all = union(late, log.waiting)
  const newGapEnd = Math.max(gapEnd, all[MAX_WAITING] ? all[MAX_WAITING - 1]!.seq : 0)
  return {
    ...log,
    rows: shown.length > 0 ? union(shown, rows) : rows,
    waiting: all.filter(({ seq }) => seq >= newGapEnd),
    gapEnd: newGapEnd,
  }
}

function filter(log: Log, isKept: (row: Row) => boolean): Log {
  return log.rows.every(isKept) && log.waiting.every(isKept)
    ? log
    : { ...log, rows: log.rows.filter(isKept), waiting: log.waiting.filter(isKept) }
}

function addNewest(log: Log, page: NewestPage): Log {
  const [newest] = page.items
  const from = toFloor(page)
  const { head, gapEnd } = log
  if (log.floor < Infinity) {
    // Without items, an unfinished page says nothing about the rows of the log.
    const isReached = from <= head || !newest
    return merge(isReached ? log : { ...log, gapEnd: Math.max(gapEnd, from) }, page, Infinity)
  }
  const newHead = newest?.seq ?? head
  const first = {
    ...{ ...log, head: newHead, floor: from, older: toOlder(page), waiting: [] },
    gapEnd: gapEnd > newHead ? gapEnd : 0,
  }
  return merge(first, page, Infinity)
}

function addOlder(log: Log, page: NewestPage): Log {
  const newest = page.items[0]?.seq ?? 0
  const floor = Math.min(log.floor, toFloor(page))
  // Only empty pages came before, if its rows are after the head.
  const added = merge({ ...log, floor, head: Math.max(log.head, newest) }, page, newest)
  return { ...added, older: added.rows.length < MAX_ROWS ? toOlder(page) : { kind: 'full' } }
}

/** Makes the log equal to a page, which ends at `to`, and the later changes. */
function merge(log: Log, page: NewestPage, to: number): Log {
  const { changed } = log
  const from = toFloor(page)
  const current = new Map([...page.items.map(row => [row.seq, row] as const), ...changed])
  const isKept = ({ seq }: Row) => seq < from || seq > to || current.has(seq)
  return place(
    filter(log, isKept),
    [...current.values()].filter(row => row !== undefined),
  )
}

function show(log: Log): Log {
  const { rows, waiting } = log
  if (waiting.length === 0 && rows.length <= LIVE_ENTRIES) return log
  const gapEnd = waiting.length > 0 ? log.gapEnd : 0
  const all = gapEnd > 0 ? waiting : union(waiting, rows)
  const shown = all.slice(0, Math.min(countRows(all, LIVE_ENTRIES), MAX_LIVE_ROWS))
  const isShorter = shown.length < all.length
  if (waiting.length === 0 && !isShorter) return log
  const oldest = shown.at(-1)?.seq ?? 0
  return {
    ...log,
    rows: shown,
    waiting: [],
    head: toNewest(log),
    floor: isShorter ? oldest : gapEnd || Math.min(log.floor, oldest),
    gapEnd: log.gapEnd - gapEnd,
    older: isShorter || gapEnd > 0 ? { kind: 'cut' } : log.older,
  }
}

/** The seq from which a page is complete. */
export function toFloor({ items, nextCursor }: NewestPage): number {
  return nextCursor === null ? 0 : (items.at(-1)?.seq ?? Infinity)
}

function toOlder({ nextCursor }: NewestPage): Older {
  return nextCursor === null ? { kind: 'end' } : { kind: 'more', cursor: nextCursor }
}

function union(some: readonly Row[], others: readonly Row[]): Row[] {
  const bySeq = new Map([...some, ...others].map(row => [row.seq, row]))
  const threads = new Set<number>()
  return [...bySeq.values()]
    .sort((one, other) => other.seq - one.seq)
    .filter(({ threadSeq }) => !threadSeq || threads.size < threads.add(threadSeq).size)
}

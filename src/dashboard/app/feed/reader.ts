import { batch, signal } from '@preact/signals'
import { toBackoffMs, type Clock } from '../live/clock.ts'
import type { Failure, Result } from '../request.ts'
import {
  LIVE_ENTRIES,
  MAX_ROWS,
  toFloor,
  toNewest,
  type Log,
  type LogAction,
  type NewestPage,
} from './log.ts'

/** How the pages of a log are read. */
export interface ReaderOptions {
  clock: Clock
  random(): number
  /** One page of rows, newest first. A short or empty page may still have a cursor. */
  readPage(cursor: string | undefined): Promise<Result<NewestPage>>
  /** How often all rows are read again, because the time decides which of them match. */
  everyMs?: number | undefined
  isHidden(): boolean
}

/** The feed into whose log the pages are read. */
interface Target {
  getLog(): Log
  apply(action: LogAction): void
  /** Merges the rows that have arrived, which come before the next page. */
  takeReceived(): void
  /** Returns whether new rows are shown at once. */
  isShowing(): boolean
  /** Shows new rows. */
  render(): void
  /** Shows the log as it is. */
  show(): void
}

export type Reading =
  | { kind: 'nothing' | 'first' | 'older' }
  | { kind: 'failed'; page: 'first' | 'older'; failure: Failure }

/** The maximum number of pages per request for rows, when pages are empty or already known. */
const MAX_PAGES = 20
/** The same when all rows are read again. Short pages may reach fewer than `MAX_ROWS`. */
const MAX_PAGES_AGAIN = 100
/** The newest page is enough, whatever it reaches. */
const ANYWHERE = Number.MAX_SAFE_INTEGER

/** Reads the pages of a project's log into the log of a feed, one request at a time. */
export function createReader(options: ReaderOptions, target: Target) {
  const { clock, everyMs, isHidden } = options
  const { getLog, apply, takeReceived, isShowing } = target
  const reading = signal<Reading>({ kind: 'nothing' })
  let isComplete = false
  /** The head when the connection started. A page requested earlier may end before it. */
  let startHead = 0
  let reads = 0
  /** Reads of known rows that failed one after the other. */
  let failures = 0
  let cancelRepeat = () => {}
  let isOverdue = false
  let isStopped = false

  /**
   * Loads the newest page, and the next ones down to the floor of the log. Merges them into the
   * log, or replaces it if they are too many.
   */
  async function readNewest(): Promise<void> {
    const floor = Math.min(getLog().floor, ANYWHERE)
    const reach = startHead
    const read = ++reads
    const items: NewestPage['items'][number][] = []
    let isWhole = false
    if (floor < ANYWHERE) cancelRepeat()
    reading.value = { kind: 'first' }
    const result = await readPages(
      undefined,
      page => {
        items.push(...page.items)
        isWhole = toFloor({ ...page, items }) <= floor
        // A list with collapsed rows has more rows than entries.
        const liveRows = Math.max(LIVE_ENTRIES, getLog().rows.length)
        return isWhole || items.length >= (isShowing() ? liveRows : MAX_ROWS)
      },
      floor < ANYWHERE ? MAX_PAGES_AGAIN : MAX_PAGES,
    )
    if (isStopped) return
    if (read !== reads) return apply({ type: 'fail' })
    if (!result.ok) {
      apply({ type: 'fail' })
      const { failure } = result
      const isUsable = isComplete && getLog().floor < Infinity
      reading.value = isUsable ? { kind: 'nothing' } : { kind: 'failed', page: 'first', failure }
      if (!isUsable) return
      return repeat(toBackoffMs(++failures, options.random, failure.retryAfterS))
    }
    failures = 0
    takeReceived()
    // A paused reader keeps their place, and the rows that were not reached.
    if (floor < ANYWHERE && !isWhole && isShowing()) apply({ type: 'reset' })
    apply({ type: 'newest', page: { ...result.data, items } })
    // The connection may have started meanwhile, at a head that this page does not reach.
    if (startHead > reach && (items[0]?.seq ?? 0) < startHead) return readNewest()
    isComplete = true
    if (everyMs !== undefined) repeat(everyMs)
    batch(() => {
      reading.value = { kind: 'nothing' }
      target.render()
    })
  }

  function repeat(waitMs: number) {
    cancelRepeat()
    cancelRepeat = clock.after(waitMs, () => {
      isOverdue = true
      readOverdue()
    })
  }

  /** A hidden page reads its rows when it is visible again. */
  function readOverdue() {
    if (!isOverdue || isHidden()) return
    isOverdue = false
    void readNewest()
  }

  async function readOlder(): Promise<void> {
    const { older, floor } = getLog()
    if (reading.value.kind !== 'nothing' || older.kind === 'end' || older.kind === 'full') return
    const read = ++reads
    reading.value = { kind: 'older' }
    const result =
      older.kind === 'more'
        ? await readPages(older.cursor, page => page.items.length > 0)
        : await readPages(undefined, page => page.items.some(({ seq }) => seq < floor))
    if (isStopped) return
    if (read !== reads) return apply({ type: 'fail' })
    takeReceived()
    // If rows were dropped meanwhile, this page does not follow the last row.
    apply(result.ok ? { type: 'older', page: result.data, after: older } : { type: 'fail' })
    batch(() => {
      reading.value = result.ok
        ? { kind: 'nothing' }
        : { kind: 'failed', page: 'older', failure: result.failure }
      target.show()
    })
  }

  /**
   * Loads pages one by one until they are enough, the list ends, `maxPages` are loaded, or another
   * read has begun.
   */
  async function readPages(
    cursor: string | undefined,
    isEnough: (page: NewestPage) => boolean,
    maxPages = MAX_PAGES,
  ): Promise<Result<NewestPage>> {
    const read = reads
    // They came before the page.
    takeReceived()
    apply({ type: 'request' })
    for (let count = 1, from = cursor; ; count += 1) {
      const result = await options.readPage(from)
      if (isStopped || read !== reads || !result.ok || isEnough(result.data)) return result
      if (count === maxPages || result.data.nextCursor === null) return result
      from = result.data.nextCursor
    }
  }

  return {
    /** The state of loading, with the error if it failed. */
    reading,
    /** True if the newest page is loaded without a gap. Until then, new events wait. */
    get isComplete() {
      return isComplete
    },
    readNewest: () => void readNewest(),
    readOverdue,
    readOlder,
    /** Reads what a new connection does not send, which starts after `head`. */
    startAt(head: number, isBroken: boolean): void {
      startHead = head
      if (!isBroken && reading.value.kind === 'first') return
      if (isBroken || toNewest(getLog()) < head) isComplete = false
      if (!isComplete) void readNewest()
    },
    /** Retries the request that failed. */
    retry(): void {
      const { value } = reading
      if (value.kind !== 'failed') return
      reading.value = { kind: 'nothing' }
      void (value.page === 'first' ? readNewest() : readOlder())
    },
    stop(): void {
      isStopped = true
      cancelRepeat()
    },
  }
}

import { batch, signal, type ReadonlySignal } from '@preact/signals'
import { toBackoffMs } from '../live/clock.ts'
import { createThrottle } from '../live/throttle.ts'
import { createConnection } from '../live/connection.ts'
import type { SocketEnvironment, ServerMessage } from '../live/socket.ts'
import { INITIAL, isUnpaused, reduce, type LiveEvent, type LiveState } from '../live/pill.ts'
import type { Result, Failure } from '../request.ts'
import {
  EMPTY,
  LIVE_ENTRIES,
  MAX_ROWS,
  MAX_WAITING,
  reduce as reduceLog,
  toFloor,
  toNewest,
  toRow,
  type Log,
  type LogAction,
  type NewestPage,
  type Row,
} from './log.ts'

/** The dependencies of a feed, which tests replace. */
export interface FeedDependencies extends SocketEnvironment {
  project: string
  /** Returns the search, as the query of the list of events. */
  toSearch(): Readonly<Record<string, string>>
  /** One page of rows, newest first. A short or empty page may still have a cursor. */
  readPage(cursor: string | undefined): Promise<Result<NewestPage>>
  /** How often all rows are read again, because the time decides which of them match. */
  everyMs?: number | undefined
  isHidden(): boolean
  /** Called with the number of events that wait while the page is hidden. */
  onUnseen?(count: number): void
  /** Called with rows that have just been shown, newest first. */
  onShown?(rows: readonly Row[]): void
  /** Called when the channels or their unread counts may have changed. */
  onChannels?(): void
}

export interface Feed {
  log: ReadonlySignal<Log>
  live: ReadonlySignal<LiveState>
  /** The state of loading, with the error if it failed. */
  reading: ReadonlySignal<Reading>
  dispatch(event: LiveEvent): void
  readOlder(): Promise<void>
  /** Retries the request that failed. */
  retry(): void
  reconnect(): void
  wake(): void
  sleep(): void
  /** Call when the page was hidden or shown. */
  updateVisibility(): void
  stop(): void
}

type Reading =
  | { kind: 'nothing' | 'first' | 'older' }
  | { kind: 'failed'; page: 'first' | 'older'; failure: Failure }

const RENDER_MS = 300
/** Larger batches come after the rows before them could be read for `READABLE_MS`. */
const FEW_ROWS = 2
const READABLE_MS = 1_000
/** The maximum number of pages per request for rows, when pages are empty or already known. */
const MAX_PAGES = 20
/** The same when all rows are read again. Short pages may reach fewer than `MAX_ROWS`. */
const MAX_PAGES_AGAIN = 100
/** The newest page is enough, whatever it reaches. */
const ANYWHERE = Number.MAX_SAFE_INTEGER

/** The stored and live events of a project, without gaps or duplicates. */
export function createFeed(dependencies: FeedDependencies): Feed {
  const { everyMs } = dependencies
  let log = EMPTY
  const shown = signal(log)
  const live = signal(INITIAL)
  const reading = signal<Reading>({ kind: 'nothing' })
  let received: Row[] = []
  /** True if the newest page is loaded without a gap. Until then, new events wait. */
  let isComplete = false
  /** The head when the connection started. A page requested earlier may end before it. */
  let startHead = 0
  /** The head in the last heartbeat. */
  let head = 0
  let reads = 0
  /** Reads of known rows that failed one after the other. */
  let failures = 0
  let cancelRepeat = () => {}
  let isOverdue = false
  /** When new rows were last shown. */
  let shownMs = -Infinity
  let isStopped = false

  const rendering = createThrottle(dependencies.clock, RENDER_MS, () => {
    if (isTooSoon()) rendering.trigger()
    else render()
  })
  const connection = createConnection({
    ...dependencies,
    onConnectionState: link => dispatch({ type: 'link', link }),
    onStart(head, isBroken) {
      startHead = head
      if (isBroken) {
        apply({ type: 'reset' })
        received = []
      } else if (reading.value.kind === 'first') return
      if (isBroken || toNewest(log) < head) isComplete = false
      if (!isComplete) void readNewest()
    },
    // The server does not tell later what was deleted or restored.
    onResume: () => void readNewest(),
    onMessage: receive,
  })

  function receive(message: ServerMessage) {
    if (message.type === 'event' || message.type === 'restored') {
      received.push(toRow(message.event))
      // Keeps the buffer within its limit between two renderings.
      if (received.length > MAX_WAITING) takeReceived()
      rendering.trigger()
    } else if (message.type === 'deleted') {
      takeReceived()
      apply({ type: 'delete', seq: message.seq })
      rendering.trigger()
    } else if (message.type === 'unread') dependencies.onChannels?.()
    else if (message.type === 'heartbeat' && (message.head ?? 0) > head) {
      // There are new events, perhaps in a channel that is not shown.
      head = message.head ?? 0
      dependencies.onChannels?.()
    }
  }

  function takeReceived() {
    if (received.length === 0) return
    apply({ type: 'arrive', rows: received })
    received = []
  }

  function apply(action: LogAction) {
    log = reduceLog(log, action)
  }

  /** Returns whether the new rows would push others off the screen before they could be read. */
  function isTooSoon(): boolean {
    // The clock may have been set back.
    const passedMs = Math.abs(dependencies.clock.now() - shownMs)
    return received.length + log.waiting.length > FEW_ROWS && passedMs < READABLE_MS
  }

  /** The only place where new rows are shown. A hidden page renders nothing. */
  function render() {
    if (isStopped) return
    takeReceived()
    const isHidden = dependencies.isHidden()
    dependencies.onUnseen?.(isHidden ? log.waiting.length : 0)
    if (isHidden) return
    if (!isComplete) return
    const newRows = log.waiting
    const isShowing = isUnpaused(live.value)
    if (isShowing) apply({ type: 'show' })
    batch(() => {
      shown.value = log
      live.value = reduce(live.value, { type: 'waiting', count: log.waiting.length })
    })
    if (!isShowing || newRows.length === 0) return
    shownMs = dependencies.clock.now()
    dependencies.onShown?.(newRows)
  }

  function dispatch(event: LiveEvent) {
    const before = isUnpaused(live.value)
    live.value = reduce(live.value, event)
    if (isUnpaused(live.value) && !before) render()
  }

  /**
   * Loads the newest page, and the next ones down to the floor of the log. Merges them into the
   * log, or replaces it if they are too many.
   */
  async function readNewest(): Promise<void> {
    const floor = Math.min(log.floor, ANYWHERE)
    const reach = startHead
    const read = ++reads
    const items: Row[] = []
    let isWhole = false
    if (floor < ANYWHERE) cancelRepeat()
    reading.value = { kind: 'first' }
    const result = await readPages(
      undefined,
      page => {
        items.push(...page.items)
        isWhole = toFloor({ ...page, items }) <= floor
        // A list with collapsed rows has more rows than entries.
        const liveRows = Math.max(LIVE_ENTRIES, log.rows.length)
        return isWhole || items.length >= (isUnpaused(live.value) ? liveRows : MAX_ROWS)
      },
      floor < ANYWHERE ? MAX_PAGES_AGAIN : MAX_PAGES,
    )
    if (isStopped) return
    if (read !== reads) return apply({ type: 'fail' })
    if (!result.ok) {
      apply({ type: 'fail' })
      const { failure } = result
      const isUsable = isComplete && log.floor < Infinity
      reading.value = isUsable ? { kind: 'nothing' } : { kind: 'failed', page: 'first', failure }
      if (!isUsable) return
      return repeat(toBackoffMs(++failures, dependencies.random, failure.retryAfterS))
    }
    failures = 0
    takeReceived()
    // A paused reader keeps their place, and the rows that were not reached.
    if (floor < ANYWHERE && !isWhole && isUnpaused(live.value)) apply({ type: 'reset' })
    apply({ type: 'newest', page: { ...result.data, items } })
    // The connection may have started meanwhile, at a head that this page does not reach.
    if (startHead > reach && (items[0]?.seq ?? 0) < startHead) return readNewest()
    isComplete = true
    if (everyMs !== undefined) repeat(everyMs)
    batch(() => {
      reading.value = { kind: 'nothing' }
      render()
    })
  }

  function repeat(waitMs: number) {
    cancelRepeat()
    cancelRepeat = dependencies.clock.after(waitMs, () => {
      isOverdue = true
      readOverdue()
    })
  }

  /** A hidden page reads its rows when it is visible again. */
  function readOverdue() {
    if (!isOverdue || dependencies.isHidden()) return
    isOverdue = false
    void readNewest()
  }

  async function readOlder(): Promise<void> {
    const { older, floor } = log
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
      shown.value = log
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
      const result = await dependencies.readPage(from)
      if (isStopped || read !== reads || !result.ok || isEnough(result.data)) return result
      if (count === maxPages || result.data.nextCursor === null) return result
      from = result.data.nextCursor
    }
  }

  void readNewest()

  return {
    log: shown,
    live,
    reading,
    dispatch,
    readOlder,
    retry() {
      const { value } = reading
      if (value.kind !== 'failed') return
      reading.value = { kind: 'nothing' }
      void (value.page === 'first' ? readNewest() : readOlder())
    },
    reconnect: connection.retry,
    wake: connection.wake,
    sleep: connection.sleep,
    updateVisibility() {
      render()
      readOverdue()
    },
    stop() {
      isStopped = true
      cancelRepeat()
      rendering.stop()
      connection.stop()
    },
  }
}

import type { Event } from '../../../events/schema.ts'
import { batch, signal, type ReadonlySignal } from '@preact/signals'
import { createThrottle } from '../live/throttle.ts'
import type { Clock } from '../live/clock.ts'
import { createConnection, type SocketLike, type SessionStatus } from '../live/connection.ts'
import type { Filters, ServerMessage } from '../live/messages.ts'
import { INITIAL, isUnpaused, reduce, type LiveEvent, type LiveState } from '../live/pill.ts'
import type { Result, Failure } from '../request.ts'
import * as logs from './log.ts'
import type { Log, NewestPage, Row } from './log.ts'

export type Match = 'wanted' | 'unwanted' | 'maybe'

/** The world around a feed. */
export interface FeedDependencies {
  project: string
  /** What the server lets through of all that comes: everything that is wanted, and perhaps more. */
  filters: Filters
  /** Whether what comes is wanted; 'maybe' where only the server knows, which is then asked again. */
  match(event: Event): Match
  /** A page of rows, newest first; a short or empty one may still have a cursor. */
  readPage(cursor: string | undefined): Promise<Result<NewestPage>>
  open(): SocketLike
  check(): Promise<SessionStatus>
  isOnline(): boolean
  isHidden(): boolean
  clock: Clock
  random(): number
  /** Told how many events wait while nobody looks. */
  onUnseen(count: number): void
  /** Told of rows that have come into view, newest first. */
  onShown(rows: readonly Row[]): void
  /** The channels have something new to say. */
  onChannels(): void
}

export interface Feed {
  log: ReadonlySignal<Log>
  live: ReadonlySignal<LiveState>
  /** What is being read, or why it could not be. */
  reading: ReadonlySignal<Reading>
  dispatch(event: LiveEvent): void
  readOlder(): Promise<void>
  /** Reads again what failed. */
  retry(): void
  reconnect(): void
  wake(): void
  sleep(): void
  /** The page has been hidden, or is looked at again. */
  updateVisibility(): void
  stop(): void
}

type Reading =
  | { kind: 'nothing' | 'first' | 'older' }
  | { kind: 'failed'; what: 'first' | 'older'; failure: Failure }

const RENDER_MS = 300
/** How often a list is read again whose events only the server can tell from others. */
const LOOK_UP_MS = 2_000
/** How many pages are asked for at once, where they come back empty or lead back to where rows were cut. */
const MOST_PAGES = 20

/** The events of a project as they are and as they come: without a loss, without a repetition. */
export function createFeed(parts: FeedDependencies): Feed {
  let log = logs.EMPTY
  const shown = signal(log)
  const live = signal(INITIAL)
  const reading = signal<Reading>({ kind: 'nothing' })
  let arrived: Row[] = []
  /** Whether the log has no hole at its newer end: until then, what arrives has to wait. */
  let isWhole = false
  /** Where the log ended when the connection began: a page that was asked for before may end earlier. */
  let mustReach = 0
  /** The end of the log as the last heartbeat told it. */
  let head = 0
  let reads = 0
  let isStopped = false

  const rendering = createThrottle(parts.clock, RENDER_MS, render)
  const lookingUp = createThrottle(parts.clock, LOOK_UP_MS, () => {
    if (isStopped) return
    if (reading.value.kind === 'first') lookingUp.trigger()
    else void readNewest()
  })
  const connection = createConnection({
    ...parts,
    onConnectionState: link => dispatch({ type: 'link', link }),
    onStart(head, isBroken) {
      mustReach = head
      if (isBroken) {
        log = logs.EMPTY
        arrived = []
      } else if (reading.value.kind === 'first') return
      const newest = log.waiting[0]?.seq ?? log.rows[0]?.seq ?? 0
      if (isBroken || !isWhole || newest < head) void readNewest()
    },
    onMessage: receive,
  })

  function receive(message: ServerMessage) {
    if (message.type === 'event') {
      const verdict = parts.match(message.event)
      if (verdict === 'maybe') lookingUp.trigger()
      if (verdict !== 'wanted') return
      arrived.push(logs.toRow(message.event))
      // Until the next rendering, no more is kept than would be kept after it.
      if (arrived.length > logs.MAX_WAITING) takeIn()
      rendering.trigger()
    } else if (message.type === 'deleted' || message.type === 'restored') {
      takeIn()
      log = logs[message.type === 'deleted' ? 'remove' : 'restore'](log, message.seq)
      rendering.trigger()
    } else if (message.type === 'unread') parts.onChannels()
    else if (message.type === 'heartbeat' && (message.head ?? 0) > head) {
      // Something has happened, perhaps in a channel that is not looked at.
      head = message.head ?? 0
      parts.onChannels()
    }
  }

  function takeIn() {
    if (arrived.length === 0) return
    log = logs.arrive(log, arrived)
    arrived = []
  }

  /** The one place where rows come into view. A page that is hidden renders nothing. */
  function render() {
    if (isStopped) return
    takeIn()
    const isHidden = parts.isHidden()
    parts.onUnseen(isHidden ? log.waiting.length : 0)
    if (isHidden) return
    if (!isWhole) return
    const fresh = log.waiting
    const isShowing = isUnpaused(live.value)
    if (isShowing) log = logs.show(log)
    batch(() => {
      shown.value = log
      live.value = reduce(live.value, { type: 'waiting', count: log.waiting.length })
    })
    if (isShowing && fresh.length > 0) parts.onShown(fresh)
  }

  function dispatch(event: LiveEvent) {
    const before = isUnpaused(live.value)
    live.value = reduce(live.value, event)
    if (isUnpaused(live.value) && !before) render()
  }

  /** Reads the newest page and joins it to what is known. */
  async function readNewest(): Promise<void> {
    isWhole = false
    const reach = mustReach
    const mine = ++reads
    reading.value = { kind: 'first' }
    const result = await readPages(undefined, page => page.items.length > 0)
    if (isStopped || mine !== reads) return
    if (!result.ok) {
      reading.value = { kind: 'failed', what: 'first', failure: result.failure }
      return
    }
    takeIn()
    log = logs.catchUp(log, result.data)
    // The connection may have begun meanwhile, behind an end that this page does not know of.
    if (mustReach > reach && (result.data.items[0]?.seq ?? 0) < mustReach) return readNewest()
    isWhole = true
    batch(() => {
      reading.value = { kind: 'nothing' }
      render()
    })
  }

  async function readOlder(): Promise<void> {
    const { older, rows } = log
    if (reading.value.kind !== 'nothing' || older.kind === 'end' || older.kind === 'full') return
    reading.value = { kind: 'older' }
    const last = rows.at(-1)?.seq ?? 0
    const result =
      older.kind === 'more'
        ? await readPages(older.cursor, page => page.items.length > 0)
        : await readPages(undefined, page => page.items.some(({ seq }) => seq < last))
    if (isStopped || reading.value.kind !== 'older') return
    // What has been cut meanwhile ends elsewhere than where this page begins.
    if (result.ok && log.older === older) log = logs.extend(log, result.data)
    batch(() => {
      reading.value = result.ok
        ? { kind: 'nothing' }
        : { kind: 'failed', what: 'older', failure: result.failure }
      shown.value = log
    })
  }

  /** Reads on until a page is good enough, the list ends, or it has been tried often enough. */
  async function readPages(
    cursor: string | undefined,
    isEnough: (page: NewestPage) => boolean,
  ): Promise<Result<NewestPage>> {
    let result = await parts.readPage(cursor)
    for (let count = 1; count < MOST_PAGES; count += 1) {
      if (!result.ok || isEnough(result.data) || result.data.nextCursor === null) break
      result = await parts.readPage(result.data.nextCursor)
    }
    return result
  }

  void readNewest()
  connection.follow({
    project: parts.project,
    filters: parts.filters,
  })

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
      void (value.what === 'first' ? readNewest() : readOlder())
    },
    reconnect: connection.retry,
    wake: connection.wake,
    sleep: connection.sleep,
    updateVisibility: render,
    stop() {
      isStopped = true
      rendering.stop()
      lookingUp.stop()
      connection.stop()
    },
  }
}

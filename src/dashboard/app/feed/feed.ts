import { batch, signal, type ReadonlySignal } from '@preact/signals'
import { isOpen } from '../../../log/events/state.ts'
import { createThrottle } from '../live/throttle.ts'
import { createConnection } from '../live/connection.ts'
import type { SocketEnvironment, ServerMessage } from '../live/socket.ts'
import { INITIAL, isUnpaused, reduce, type LiveEvent, type LiveState } from '../live/pill.ts'
import { createReader, type Reading, type ReaderOptions } from './reader.ts'
import {
  EMPTY,
  MAX_WAITING,
  reduce as reduceLog,
  toRow,
  type Log,
  type LogAction,
  type Row,
} from './log.ts'

/** The dependencies of a feed, which tests replace. */
export interface FeedDependencies extends SocketEnvironment, ReaderOptions {
  project: string
  /** Returns the search, as the query of the list of events. */
  toSearch(): Readonly<Record<string, string>>
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

const RENDER_MS = 300
/** Larger batches come after the rows before them could be read for `READABLE_MS`. */
const FEW_ROWS = 2
const READABLE_MS = 1_000
/** The stored and live events of a project, without gaps or duplicates. */
export function createFeed(dependencies: FeedDependencies): Feed {
  let log = EMPTY
  const shown = signal(log)
  const live = signal(INITIAL)
  let received: Row[] = []
  /** The head in the last heartbeat. */
  let head: number | undefined
  /** When new rows were last shown. */
  let shownMs = -Infinity
  /** True if the server may list other events of threads than the log has. */
  let isStale = false

  const rendering = createThrottle(dependencies.clock, RENDER_MS, () => {
    if (isTooSoon()) rendering.trigger()
    else render()
  })
  const reader = createReader(dependencies, {
    getLog: () => log,
    apply,
    takeReceived,
    isShowing: () => isUnpaused(live.value),
    render,
    show: () => (shown.value = log),
  })
  const connection = createConnection({
    ...dependencies,
    onConnectionState: link => dispatch({ type: 'link', link }),
    onStart(head, isBroken) {
      if (isBroken) {
        apply({ type: 'reset' })
        received = []
      }
      reader.startAt(head, isBroken)
    },
    // The server does not tell later what was deleted or restored.
    onResume: reader.readNewest,
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
      // An earlier event of its thread, if there is one, takes its place. A page that is on its way
      // may lack that event.
      isStale ||= log.requests > 0 || listThreads().some(({ seq }) => seq === message.seq)
      apply({ type: 'delete', seq: message.seq })
      rendering.trigger()
    } else if (message.type === 'unread') dependencies.onChannels?.()
    else if (message.type === 'heartbeat' && message.head !== head) {
      // There are new events, perhaps in a channel that is not shown, or the log was restored.
      head = message.head
      dependencies.onChannels?.()
      // An event that ended a thread is not sent if the search does not find it.
      const isSearch = Object.keys(dependencies.toSearch()).length > 0
      if (!isSearch || !listThreads().some(({ state }) => !state || isOpen(state))) return
      isStale = true
      rendering.trigger()
    }
  }

  function listThreads() {
    return [...log.rows, ...log.waiting].filter(({ threadSeq }) => threadSeq)
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
    takeReceived()
    const isHidden = dependencies.isHidden()
    dependencies.onUnseen?.(isHidden ? log.waiting.length : 0)
    if (isHidden) return
    if (isStale) {
      isStale = false
      reader.readNewest()
    }
    if (!reader.isComplete) return
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

  reader.readNewest()

  return {
    log: shown,
    live,
    dispatch,
    reading: reader.reading,
    readOlder: reader.readOlder,
    retry: reader.retry,
    reconnect: connection.retry,
    wake: connection.wake,
    sleep: connection.sleep,
    updateVisibility() {
      render()
      reader.readOverdue()
    },
    stop() {
      reader.stop()
      rendering.stop()
      connection.stop()
    },
  }
}

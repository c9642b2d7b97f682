import { toBackoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { parseMessage, type ClientMessage, type Filters, type ServerMessage } from './messages.ts'
import type { ConnectionState } from './pill.ts'

/** The part of a WebSocket that is used. */
export type SocketLike = Pick<WebSocket, 'send' | 'close' | 'onmessage' | 'onclose'>

/** The state of the session, checked after a socket closed without a reason. */
export type SessionStatus = 'signed_in' | 'signed_out' | 'unreachable'

export interface ConnectionOptions {
  open(): SocketLike
  check(): Promise<SessionStatus>
  isOnline(): boolean
  clock: Clock
  random(): number
  onConnectionState(link: ConnectionState): void
  /**
   * The view starts after `head`; earlier events are loaded elsewhere. `isBroken` means that it had
   * a socket before, so known events may have gaps, have changed or belong to another log.
   */
  onStart(head: number, isBroken: boolean): void
  /** The view continues without a gap. Known events may have been deleted or restored meanwhile. */
  onResume(): void
  /** Messages about the followed view, in log order, each event once. */
  onMessage(message: ServerMessage): void
}

interface View {
  project: string
  filters: Filters
}

export interface Connection {
  /** Follows another view. */
  follow(view: View): void
  retry(): void
  /** Checks the connection after the browser was asleep or the network came back. */
  wake(): void
  /** Call when the browser reports that it is offline. */
  sleep(): void
  stop(): void
}

const HELLO_MS = 10_000
const HEARTBEAT_MS = 15_000
const TOLERANCE_MS = 5_000
const TIMEOUT_MS = 2 * HEARTBEAT_MS + TOLERANCE_MS
/** The close code when the session, the membership or the project has ended. */
const POLICY_VIOLATION = 1008

/** A socket that reconnects, and one view that is followed over it without gaps. */
export function createConnection(options: ConnectionOptions): Connection {
  const { clock } = options
  let socket: SocketLike | undefined
  let view: View | undefined
  let epoch: string | undefined
  /** The last seq of the view; undefined until the server has sent the head of the log. */
  let cursor: number | undefined
  /** True once the view has started, or lost a socket. */
  let isBroken = false
  let attempt = 0
  let heardMs = 0
  let isStopped = false
  let cancelTimer = () => {}

  function connect() {
    cancelTimer()
    drop()
    if (isStopped || !view) return
    options.onConnectionState({ kind: 'connecting' })
    const opened = options.open()
    let saidHello = false
    socket = opened
    heard(HELLO_MS)
    opened.onmessage = ({ data }: MessageEvent<unknown>) => {
      heard(TIMEOUT_MS)
      const message = typeof data === 'string' ? parseMessage(data) : undefined
      if (!message) return
      saidHello ||= message.type === 'hello'
      receive(message)
    }
    opened.onclose = ({ code }) => {
      if (socket !== opened) return
      drop()
      // A refused handshake looks like a network failure. Only the server can tell them apart.
      if (code === POLICY_VIOLATION || !saidHello) void checkReason(code === POLICY_VIOLATION)
      else reconnect()
    }
  }

  function receive(message: ServerMessage) {
    if (message.type === 'hello') {
      const isOther = epoch !== undefined && epoch !== message.epoch
      epoch = message.epoch
      if (isOther) cursor = undefined
      return subscribe()
    }
    if (message.type === 'error') {
      if (message.code === 'not_found') finish({ kind: 'refused' })
      return
    }
    if (message.project !== view?.project) return
    if (message.type === 'event') {
      // Before `subscribed`, events cannot belong to this view.
      if (cursor === undefined || message.seq <= cursor) return
      cursor = message.seq
    }
    if (message.type === 'heartbeat' && cursor !== undefined) {
      // With filters, most events never arrive. The head avoids replaying them on reconnection.
      cursor = Math.max(cursor, message.head ?? 0)
    }
    if (message.type === 'gap') start(message.head)
    if (message.type === 'subscribed') {
      attempt = 0
      if (cursor === undefined) start(message.head)
      else if (message.recovered) options.onResume()
      options.onConnectionState({ kind: 'live' })
    }
    options.onMessage(message)
  }

  function start(head: number) {
    cursor = head
    options.onStart(head, isBroken)
    isBroken = true
  }

  function subscribe() {
    if (!view || !socket || epoch === undefined) return
    const message: ClientMessage = {
      type: 'subscribe',
      project: view.project,
      after: cursor ?? null,
      epoch,
      filters: view.filters,
    }
    socket.send(JSON.stringify(message))
  }

  async function checkReason(wasRefused: boolean) {
    const standing = await options.check()
    if (isStopped || socket) return
    if (standing === 'signed_out') finish({ kind: 'signed_out' })
    else if (standing === 'signed_in' && wasRefused) finish({ kind: 'refused' })
    else reconnect()
  }

  function reconnect() {
    // Only after a failure: a browser is also offline on a machine that reaches nothing but itself.
    if (!options.isOnline()) return goOffline()
    attempt += 1
    const delayMs = toBackoffMs(attempt, options.random)
    options.onConnectionState({ kind: 'reconnecting', atMs: clock.now() + delayMs })
    cancelTimer()
    cancelTimer = clock.after(delayMs, connect)
  }

  function goOffline() {
    if (isStopped) return
    cancelTimer()
    drop()
    options.onConnectionState({ kind: 'offline', sinceMs: clock.now() })
  }

  /** Stops for good. The page decides what to do next. */
  function finish(link: ConnectionState) {
    stop()
    options.onConnectionState(link)
  }

  function heard(patienceMs: number) {
    heardMs = clock.now()
    cancelTimer()
    cancelTimer = clock.after(patienceMs, () => {
      drop()
      reconnect()
    })
  }

  function drop() {
    const old = socket
    socket = undefined
    if (!old) return
    isBroken = true
    old.onmessage = null
    old.onclose = null
    old.close()
  }

  function stop() {
    isStopped = true
    cancelTimer()
    drop()
  }

  return {
    follow(next) {
      // A new socket, so that no message of the previous view can still arrive.
      drop()
      view = next
      cursor = undefined
      isBroken = false
      connect()
    },
    retry: connect,
    wake() {
      // Timers stop while the browser sleeps, so the time of the last message decides.
      if (!socket || clock.now() - heardMs > HEARTBEAT_MS + TOLERANCE_MS) connect()
    },
    sleep: goOffline,
    stop,
  }
}

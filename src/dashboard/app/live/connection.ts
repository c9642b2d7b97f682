import { toBackoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { parseMessage, type ClientMessage, type Filters, type ServerMessage } from './messages.ts'
import type { ConnectionState } from './pill.ts'

/** The part of a WebSocket that we use. */
export type SocketLike = Pick<WebSocket, 'send' | 'close' | 'onmessage' | 'onclose'>

/** Whether the session still stands, asked where a socket does not say why it ended. */
export type SessionStatus = 'signed_in' | 'signed_out' | 'unreachable'

export interface ConnectionOptions {
  open(): SocketLike
  check(): Promise<SessionStatus>
  isOnline(): boolean
  clock: Clock
  random(): number
  onConnectionState(link: ConnectionState): void
  /**
   * The view begins after `head`: what came before is to be read elsewhere. `isBroken` when it had begun before, and what
   * is known of it may have holes or be of another log.
   */
  onStart(head: number, isBroken: boolean): void
  /** Messages about the view that is followed, in the order of the log, each event once. */
  onMessage(message: ServerMessage): void
}

interface View {
  project: string
  filters: Filters
}

export interface Connection {
  /** Follows another view from now on. */
  follow(view: View): void
  retry(): void
  /** Looks whether the connection is still good: the browser was asleep, or says that the network came back. */
  wake(): void
  /** The browser says that the network is gone. */
  sleep(): void
  stop(): void
}

const HELLO_MS = 10_000
const HEARTBEAT_MS = 15_000
const SLACK_MS = 5_000
const SILENCE_MS = 2 * HEARTBEAT_MS + SLACK_MS
/** The session, the membership or the project has gone. */
const POLICY_VIOLATION = 1008

/** One socket that is kept alive, and one view that is followed over it without a loss. */
export function createConnection(options: ConnectionOptions): Connection {
  const { clock } = options
  let socket: SocketLike | undefined
  let view: View | undefined
  let epoch: string | undefined
  /** The last seq that the view has seen; undefined until the server has said where the log ends. */
  let cursor: number | undefined
  let hasStarted = false
  let attempt = 0
  let heardMs = 0
  let isStopped = false
  let cancelTimer = () => {}

  function connect() {
    cancelTimer()
    drop()
    if (isStopped || !view) return
    if (!options.isOnline()) return goOffline()
    options.onConnectionState({ kind: 'connecting' })
    const opened = options.open()
    let saidHello = false
    socket = opened
    heard(HELLO_MS)
    opened.onmessage = ({ data }: MessageEvent<unknown>) => {
      heard(SILENCE_MS)
      const message = typeof data === 'string' ? parseMessage(data) : undefined
      if (!message) return
      saidHello ||= message.type === 'hello'
      receive(message)
    }
    opened.onclose = ({ code }) => {
      if (socket !== opened) return
      drop()
      // A handshake that is refused looks like a network that fails; only the server can tell which.
      if (code === POLICY_VIOLATION || !saidHello) void askWhy(code === POLICY_VIOLATION)
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
      // Before the server has said where the view begins, it cannot be one of it.
      if (cursor === undefined || message.seq <= cursor) return
      cursor = message.seq
    }
    if (message.type === 'heartbeat' && cursor !== undefined) {
      // With filters, most of the log never comes: it need not be looked through again after a reconnection.
      cursor = Math.max(cursor, message.head ?? 0)
    }
    if (message.type === 'gap') start(message.head)
    if (message.type === 'subscribed') {
      attempt = 0
      if (cursor === undefined) start(message.head)
      options.onConnectionState({ kind: 'live' })
    }
    options.onMessage(message)
  }

  function start(head: number) {
    cursor = head
    options.onStart(head, hasStarted)
    hasStarted = true
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

  async function askWhy(wasRefused: boolean) {
    const standing = await options.check()
    if (isStopped || socket) return
    if (standing === 'signed_out') finish({ kind: 'signed_out' })
    else if (standing === 'signed_in' && wasRefused) finish({ kind: 'refused' })
    else reconnect()
  }

  function reconnect() {
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

  /** The end: what comes next is for the page to say. */
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
      view = next
      cursor = undefined
      hasStarted = false
      // On a socket of its own, so that nothing of the view before can still be under way.
      connect()
    },
    retry: connect,
    wake() {
      // Timers sleep with the browser: the time since the last message tells, not they.
      if (!socket || clock.now() - heardMs > HEARTBEAT_MS + SLACK_MS) connect()
    },
    sleep: goOffline,
    stop,
  }
}

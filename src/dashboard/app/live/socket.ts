import { toBackoffMs, type Clock } from './clock.ts'
import type { ConnectionState } from './pill.ts'
import { parseExact } from '../../../http/exact-json.ts'
import type { Event } from '../../../log/events/schema.ts'

/** The part of a WebSocket that is used. */
export type SocketLike = Pick<WebSocket, 'send' | 'close' | 'onmessage' | 'onclose'>

/** The state of the session, checked after a socket closed without a reason. */
export type SessionStatus = 'signed_in' | 'signed_out' | 'unreachable'

/** The browser around a live socket, which tests replace. */
export interface SocketEnvironment {
  open(): SocketLike
  check(): Promise<SessionStatus>
  isOnline(): boolean
  clock: Clock
  random(): number
  /** Called with the build of the dashboard that the server serves. */
  onBuild(build: string): void
}

export interface SocketOptions extends SocketEnvironment {
  onConnectionState(state: ConnectionState): void
  /** Returns the first message on a new socket. */
  greet(epoch: string): ClientMessage
  /** Handles a message. Returns true if it starts the stream that `greet` asked for. */
  receive(message: StreamMessage): boolean
  /** Called when a socket is lost or given up. */
  onDrop?(): void
}

type StreamMessage = Exclude<ServerMessage, { type: 'hello' | 'error' }>

export interface LiveSocket {
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
/** The close code when the account has too many sockets. */
const TRY_LATER = 1013

/** A socket to the live feed, which reconnects. */
export function createLiveSocket(options: SocketOptions): LiveSocket {
  const { clock, onConnectionState } = options
  let socket: SocketLike | undefined
  let attempt = 0
  let heardMs = 0
  let isStopped = false
  let cancelTimer = () => {}

  function connect() {
    drop()
    if (isStopped) return
    onConnectionState({ kind: 'connecting' })
    const opened = options.open()
    let stage: 'opened' | 'greeted' | 'live' = 'opened'
    socket = opened
    hear(HELLO_MS)
    opened.onmessage = ({ data }: MessageEvent<unknown>) => {
      hear(TIMEOUT_MS)
      const message = typeof data === 'string' ? parseMessage(data) : undefined
      if (message?.type === 'hello') {
        // An older server, beside new ones during an upgrade, does not know searches.
        if (message.build === undefined) return reconnect()
        stage = 'greeted'
        options.onBuild(message.build)
        opened.send(JSON.stringify(options.greet(message.epoch)))
      } else if (message?.type === 'error') {
        if (message.code === 'not_found') finish({ kind: 'refused' })
        else reject(message.message)
      } else if (message && options.receive(message) && stage !== 'live') {
        stage = 'live'
        attempt = 0
        onConnectionState({ kind: 'live' })
      }
    }
    opened.onclose = ({ code }) => {
      if (socket !== opened) return
      drop()
      if (code === TRY_LATER && stage === 'opened') reject('Too many pages are open')
      // A refused handshake looks like a network failure. Only the server can tell them apart.
      else if (code === POLICY_VIOLATION || stage === 'opened')
        void checkReason(code === POLICY_VIOLATION)
      else reconnect()
    }
  }

  async function checkReason(wasRefused: boolean) {
    const standing = await options.check()
    if (isStopped || socket) return
    if (standing === 'signed_out') finish({ kind: 'signed_out' })
    else if (standing === 'signed_in' && wasRefused) finish({ kind: 'refused' })
    else reconnect()
  }

  function reconnect() {
    drop()
    // Only after a failure: a browser is also offline on a machine that reaches nothing but itself.
    if (!options.isOnline()) return goOffline()
    attempt += 1
    const delayMs = toBackoffMs(attempt, options.random)
    onConnectionState({ kind: 'reconnecting', atMs: clock.now() + delayMs })
    cancelTimer = clock.after(delayMs, connect)
  }

  function goOffline() {
    if (isStopped) return
    drop()
    onConnectionState({ kind: 'offline', sinceMs: clock.now() })
  }

  /** Waits for the reader, because the server would refuse another attempt, too. */
  function reject(reason: string) {
    drop()
    onConnectionState({ kind: 'rejected', reason })
  }

  /** Stops for good. The page decides what to do next. */
  function finish(state: ConnectionState) {
    stop()
    onConnectionState(state)
  }

  function hear(patienceMs: number) {
    heardMs = clock.now()
    cancelTimer()
    cancelTimer = clock.after(patienceMs, reconnect)
  }

  function drop() {
    cancelTimer()
    const old = socket
    socket = undefined
    if (!old) return
    options.onDrop?.()
    old.onmessage = null
    old.onclose = null
    old.close()
  }

  function stop() {
    isStopped = true
    drop()
  }

  connect()
  return {
    retry: connect,
    wake() {
      // Timers stop while the browser sleeps, so the time of the last message decides.
      if (!socket || clock.now() - heardMs > HEARTBEAT_MS + TOLERANCE_MS) connect()
    },
    sleep: goOffline,
    stop,
  }
}

type ClientMessage =
  | {
      type: 'subscribe'
      project: string
      /** The last seq received; null to start now. */
      after: number | null
      epoch?: string
      /** The query of the list of events. Only its matches are sent. */
      search: Readonly<Record<string, string>>
    }
  | { type: 'watch' }

/** The heads of logs, by the id of their project. */
export type Heads = Readonly<Record<string, number>>

export type ServerMessage =
  /** An older server has no `build`. */
  | { type: 'hello'; epoch: string; build?: string }
  | { type: 'subscribed'; project: string; head: number; recovered: boolean }
  | { type: 'event'; project: string; seq: number; event: Event }
  | { type: 'deleted'; project: string; seq: number }
  | { type: 'restored'; project: string; seq: number; event: Event }
  | { type: 'gap'; project: string; reason: string; head: number }
  /** Everything up to `head` was sent. Without `project`, no project is followed. */
  | { type: 'heartbeat'; project?: string; head?: number }
  | { type: 'heads'; heads: Heads }
  | { type: 'unread'; project: string }
  | { type: 'acknowledged'; project: string; seq: number }
  | { type: 'error'; code: string; message: string }

/** Parses a message; undefined if it is not one. The server's schema guarantees its content. */
function parseMessage(text: string): ServerMessage | undefined {
  try {
    const { value } = parseExact(text)
    return value instanceof Object && 'type' in value ? (value as ServerMessage) : undefined
  } catch {
    return undefined
  }
}

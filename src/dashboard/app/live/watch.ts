import { toBackoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import type { SocketLike } from './connection.ts'

/** The heads of logs, by the id of their project. */
export type Heads = Readonly<Record<string, number>>

export interface WatchOptions {
  open(): SocketLike
  isOnline(): boolean
  clock: Clock
  random(): number
  /** Called with the heads that have changed; the first time with all of them. */
  onHeads(heads: Heads): void
  onLive(isLive: boolean): void
  /** Called when the session may have ended. No further attempt follows. */
  onRefused(): void
}

export interface Watch {
  /** Connects now, unless the socket is fine: after the browser was asleep or offline. */
  wake(): void
  stop(): void
}

const HEARTBEAT_MS = 15_000
const TIMEOUT_MS = 2 * HEARTBEAT_MS + 5_000
/** The close code when the session has ended. */
const POLICY_VIOLATION = 1008

/** Watches the heads of all projects of the account over one socket, which reconnects. */
export function createWatch(options: WatchOptions): Watch {
  const { clock } = options
  let socket: SocketLike | undefined
  let attempt = 0
  let heardMs = 0
  let isStopped = false
  let cancelTimer = () => {}

  function connect() {
    drop()
    if (isStopped) return
    const opened = options.open()
    socket = opened
    hear()
    opened.onmessage = ({ data }: MessageEvent<unknown>) => {
      hear()
      const message = typeof data === 'string' ? parse(data) : undefined
      if (message?.type === 'hello') opened.send(JSON.stringify({ type: 'watch' }))
      if (!message?.heads) return
      attempt = 0
      options.onLive(true)
      options.onHeads(message.heads)
    }
    opened.onclose = ({ code }) => {
      if (socket !== opened) return
      if (code !== POLICY_VIOLATION) return reconnect()
      stop()
      options.onRefused()
    }
  }

  function hear() {
    heardMs = clock.now()
    cancelTimer()
    cancelTimer = clock.after(TIMEOUT_MS, reconnect)
  }

  function reconnect() {
    drop()
    options.onLive(false)
    // The browser says when it is online again.
    if (!options.isOnline()) return
    attempt += 1
    cancelTimer = clock.after(toBackoffMs(attempt, options.random), connect)
  }

  function drop() {
    cancelTimer()
    const old = socket
    socket = undefined
    if (!old) return
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
    wake() {
      // Timers stop while the browser sleeps, so the time of the last message decides.
      if (!socket || clock.now() - heardMs > TIMEOUT_MS) connect()
    },
    stop,
  }
}

/** Returns undefined for what a server never sends. */
function parse(text: string): { type?: string; heads?: Heads } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

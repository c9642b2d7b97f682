import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { CAN_REUSE_CONNECTIONS } from '../platform.ts'
import type { CheckedUrl } from './guard.ts'

/** Called with what arrives on a connection during one exchange. */
interface ConnectionListener {
  onData(bytes: Buffer): void
  /** Called when the connection has failed or was closed. */
  onClose(error: Error): void
}

/** A connection to one host. It carries one exchange at a time. */
export interface Connection {
  /** True if an earlier exchange used the connection. */
  readonly isReused: boolean
  /** Sends a request, and reports what follows to the listener. */
  send(request: string | Uint8Array, listener: ConnectionListener): void
  /** Keeps the connection for the next exchange with its host. */
  keep(): void
  destroy(): void
}

export interface ConnectionsOptions {
  /** Returns addresses that are checked. */
  lookup: LookupFunction
  /** Certificate authorities to trust instead of those of the system. */
  ca: string | undefined
  /** The most idle connections to one host. */
  maxIdle: number
  /** How long an idle connection is kept. */
  idleMs: number
}

interface Idle {
  connection: Connection
  sinceMs: number
}

/** Creates the connections of a client. An idle connection is used again for the same origin. */
export function createConnections({ lookup, ca, maxIdle, idleMs }: ConnectionsOptions) {
  const idle = new Map<string, Idle[]>()
  let sweeping: ReturnType<typeof setTimeout> | undefined

  function dial({ host, port, isSecure }: CheckedUrl): Socket {
    const address = { host, port, lookup, noDelay: true }
    if (!isSecure) return connectTcp(address)
    return connectTls({
      ...address,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca }),
      ...(isIP(host) === 0 && { servername: host.replace(/\.$/, '') }),
    })
  }

  function open(target: CheckedUrl): Connection {
    const { origin } = target.url
    const socket = dial(target)
    let isReady = !target.isSecure
    let isReused = false
    let isOpen = true
    let waiting: string | Uint8Array | undefined
    let listener: ConnectionListener | undefined

    function close(error: Error): void {
      if (!isOpen) return
      isOpen = false
      const before = listener
      listener = undefined
      remove(origin, connection)
      socket.destroy()
      before?.onClose(error)
    }

    const connection: Connection = {
      get isReused() {
        return isReused
      },
      send(request, nextListener) {
        listener = nextListener
        // Nothing is sent before the certificate is verified.
        if (isReady) socket.write(request)
        else waiting = request
      },
      keep() {
        listener = undefined
        isReused = true
        // A part of the request that is still unsent would precede the next request.
        if (!CAN_REUSE_CONNECTIONS || socket.writableLength > 0 || !isOpen) close(CLOSED)
        else store(origin, connection)
      },
      destroy() {
        listener = undefined
        close(CLOSED)
      },
    }
    socket.on('data', (bytes: Buffer) => {
      if (listener) listener.onData(bytes)
      // Nobody asked for these bytes. They must not become the response to the next request.
      else close(CLOSED)
    })
    socket.on('error', close)
    socket.on('end', () => close(CLOSED))
    socket.on('close', () => close(CLOSED))
    if (target.isSecure) {
      socket.on('secureConnect', () => {
        isReady = true
        if (waiting !== undefined) socket.write(waiting)
        waiting = undefined
      })
    }
    return connection
  }

  function store(origin: string, connection: Connection): void {
    const kept = idle.get(origin) ?? []
    if (kept.length >= maxIdle) return connection.destroy()
    kept.push({ connection, sinceMs: performance.now() })
    idle.set(origin, kept)
    if (sweeping) return
    sweeping = setTimeout(sweep, idleMs)
    sweeping.unref()
  }

  function remove(origin: string, connection: Connection): void {
    const kept = idle.get(origin)
    const at = kept?.findIndex(one => one.connection === connection) ?? -1
    if (at !== -1) kept?.splice(at, 1)
    if (kept?.length === 0) idle.delete(origin)
  }

  function sweep(): void {
    sweeping = undefined
    const oldestMs = performance.now() - idleMs
    for (const { connection, sinceMs } of [...idle.values()].flat()) {
      if (sinceMs <= oldestMs) connection.destroy()
    }
    if (idle.size === 0) return
    sweeping = setTimeout(sweep, idleMs)
    sweeping.unref()
  }

  return {
    /** Returns the connection that was idle for the shortest time; otherwise a new one. */
    take(target: CheckedUrl): Connection {
      const { origin } = target.url
      const kept = idle.get(origin)
      const last = kept?.pop()
      if (kept?.length === 0) idle.delete(origin)
      return last?.connection ?? open(target)
    },
    open,
    /** Closes idle connections. */
    close(): void {
      clearTimeout(sweeping)
      sweeping = undefined
      for (const { connection } of [...idle.values()].flat()) connection.destroy()
    },
  }
}

/** The error of a connection that ended without one. */
const CLOSED = Object.assign(new Error('The connection was closed'), { code: 'ECONNRESET' })

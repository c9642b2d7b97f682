import { createServer, type AddressInfo } from 'node:net'
import { explainSystemError, isOutOfFiles } from './system-error.ts'

// The interface between the server and the runtime that serves HTTP and WebSockets.

export interface Socket<Data> {
  data: Data
  send(text: string): void
  join(topic: string): void
  leave(topic: string): void
  close(code: number, reason: string): void
  /** Unsent bytes, without those in the kernel's buffer. */
  readonly bufferedBytes: number
}

export interface ServeOptions<Data> {
  port: number
  host: string
  /** The settings of host and port, for error messages. */
  hostSetting?: 'HOST' | 'METRICS_HOST'
  portSetting?: 'PORT' | 'METRICS_PORT'
  /** Shares the port with other processes. The kernel distributes the connections. Linux only. */
  isShared?: boolean | undefined
  /** The runtime's limit in bytes. Above it, the runtime responds without an envelope. */
  maxBodyBytes: number
  maxFrameBytes: number
  /** A socket with more unsent bytes than this is closed. */
  maxBufferedBytes: number
  /** Responds to a request. `peer` returns the IP address of the other end of the connection. */
  fetch(request: Request, peer: () => string): Response | Promise<Response>
  /** Handles a WebSocket handshake. Returns the socket's data, or a response that refuses it. */
  upgrade(request: Request, peer: () => string): Data | Response | Promise<Data | Response>
  open(socket: Socket<Data>): void
  message(socket: Socket<Data>, text: string): void
  close(socket: Socket<Data>, code: number): void
}

export interface Listener {
  port: number
  publish(topic: string, text: string): void
  /** Closes the port, and sockets with 1001. Resolves when the requests in flight are answered. */
  stop(): Promise<void>
}

/** Returns the URL of a server for clients on the same machine. */
export function toLocalUrl({ host, port }: { host: string; port: number }): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${toHostPort({ host: local, port })}`
}

/** Returns a host and a port as one text. An address of IPv6 is in brackets. */
export function toHostPort({ host, port }: { host: string; port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns true for a WebSocket handshake. */
export function isWebSocketHandshake(request: Request): boolean {
  return request.method === 'GET' && request.headers.get('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Replaces a host of three characters or fewer. Elysia searches for the path from the eleventh
 * character of the URL on, and does not find it after a shorter host (elysiajs/elysia#748).
 */
export function withRoutableUrl(request: Request): Request {
  const slash = request.url.indexOf('/', 8)
  if (slash < 0 || slash > 10) return request
  return new Request(`http://localhost${request.url.slice(slash)}`, request)
}

type ListenPlace = Pick<ServeOptions<never>, 'host' | 'port' | 'hostSetting' | 'portSetting'>

/**
 * Returns the port, or a free one for 0. Throws when another program listens there, because with
 * SO_REUSEPORT it would receive some of the requests.
 */
export function findFreePort(place: ListenPlace): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', error => reject(toListenError(error, place)))
    server.listen({ host: place.host, port: place.port, exclusive: true }, () => {
      // A TCP server always has an AddressInfo.
      const found = (server.address() as AddressInfo).port
      server.close(() => resolve(found))
    })
  })
}

/** Codes of an address that this machine lacks, or of a host name without addresses. */
const NO_ADDRESS = new Set([
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EINVAL',
  // Bun gives it for a name without addresses.
  'ENOTSUP',
  'EAFNOSUPPORT',
])

/** Converts an error of listening to one that says what to do. */
export function toListenError(
  error: unknown,
  { host, port, hostSetting = 'HOST', portSetting = 'PORT' }: ListenPlace,
): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (isOutOfFiles(error)) return new Error(explainSystemError(error), { cause: error })
  const setHost = `Set ${hostSetting} to one of its addresses, such as 127.0.0.1 or 0.0.0.0`
  const reason =
    {
      EADDRINUSE: `is in use. Stop the other program, or set ${portSetting} to another port`,
      EACCES: `requires root. Set ${portSetting} to 1024 or higher`,
    }[code] ??
    (NO_ADDRESS.has(code) || message.startsWith('Failed to listen')
      ? `is not available, because this machine does not have that address. ${setHost}`
      : `cannot be opened on this machine (${code || message}). ${setHost}`)
  return new Error(`Port ${port} on ${host} ${reason}.`, { cause: error })
}

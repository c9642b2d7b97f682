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
  /** The setting that the port comes from, for messages. */
  portSetting?: 'PORT' | 'METRICS_PORT'
  /** Whether other processes share the port. The kernel distributes connections among them. Linux only. */
  isShared?: boolean | undefined
  /** The runtime's own limit in bytes. Above it the runtime answers by itself, without our envelope. */
  maxBodyBytes: number
  maxFrameBytes: number
  /** A socket with more unsent bytes than this is closed. */
  maxBufferedBytes: number
  /** `peer` returns the address of the other end of the connection. */
  fetch(request: Request, peer: () => string): Response | Promise<Response>
  /** Handles a WebSocket handshake: returns the socket's data, or the response that refuses it. */
  upgrade(request: Request, peer: () => string): Data | Response | Promise<Data | Response>
  open(socket: Socket<Data>): void
  message(socket: Socket<Data>, text: string): void
  close(socket: Socket<Data>, code: number): void
}

export interface Listener {
  port: number
  publish(topic: string, text: string): void
  /** Takes no new connections, closes sockets with 1001, and resolves when the requests in flight are answered. */
  stop(): Promise<void>
}

/** The URL of a server on its own machine. */
export function toLocalUrl({ host, port }: { host: string; port: number }): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`
}

/** Whether a request wants to become a socket. */
export function isWebSocketHandshake(request: Request): boolean {
  return request.method === 'GET' && request.headers.get('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Elysia searches the path from the eleventh character on, and misses it after a host of three characters or fewer
 * (elysiajs/elysia#748).
 */
export function withRoutableUrl(request: Request): Request {
  const slash = request.url.indexOf('/', 8)
  if (slash < 0 || slash > 10) return request
  return new Request(`http://localhost${request.url.slice(slash)}`, request)
}

/** Explains why nothing can listen there and what to do; returns any other error as it is. */
export function toListenError(
  error: unknown,
  { host, port, portSetting = 'PORT' }: Pick<ServeOptions<never>, 'host' | 'port' | 'portSetting'>,
): unknown {
  const { code } = error as { code?: unknown }
  const reason = {
    EADDRINUSE: `is taken: stop what listens there, or set ${portSetting} to another one`,
    EACCES: `is only for root: set ${portSetting} to one from 1024 on`,
    EADDRNOTAVAIL: `cannot be had, because this machine has no such address: set HOST to one that it has`,
  }[String(code)]
  return reason === undefined ? error : new Error(`Port ${port} on ${host} ${reason}.`)
}

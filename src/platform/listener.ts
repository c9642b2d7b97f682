/** What the platform gives and takes where it listens: a server of HTTP and of sockets. */

export interface Socket<Data> {
  data: Data
  send(text: string): void
  join(topic: string): void
  leave(topic: string): void
  close(code: number, reason: string): void
  /** Bytes that the other end has not taken yet, beyond what the kernel holds. */
  readonly bufferedBytes: number
}

export interface ServeOptions<Data> {
  port: number
  host: string
  /** Whether other processes listen there, too: the system deals connections out among them. On Linux alone. */
  isShared?: boolean | undefined
  /** The platform's own ceiling in bytes; over it, it answers by itself, without our envelope. */
  maxBodyBytes: number
  maxFrameBytes: number
  /** A socket that lets more than this many bytes pile up is closed. */
  maxBufferedBytes: number
  /** `peer` tells the address of the other end of the connection. */
  fetch(request: Request, peer: () => string): Response | Promise<Response>
  /** For WebSocket handshakes: what the socket carries, or the answer that refuses it. */
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

/** Where a server that listens on `host` answers on its own machine. */
export function toLocalUrl({ host, port }: { host: string; port: number }): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`
}

/** Whether a request wants to become a socket. */
export function wantsSocket(request: Request): boolean {
  return request.headers.get('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Elysia looks for the path from the eleventh character on, and so misses it behind a host of three characters or
 * fewer (elysiajs/elysia#748).
 */
export function withFindablePath(request: Request): Request {
  const slash = request.url.indexOf('/', 8)
  if (slash < 0 || slash > 10) return request
  return new Request(`http://localhost${request.url.slice(slash)}`, request)
}

/** Says why nothing can listen there, and what to do; any other error as it is. */
export function toListenError(
  error: unknown,
  { host, port }: { host: string; port: number },
): unknown {
  const { code } = error as { code?: unknown }
  const reason = {
    EADDRINUSE: `is taken: stop what listens there, or set PORT to another one`,
    EACCES: `is only for root: set PORT to one from 1024 on`,
    EADDRNOTAVAIL: `cannot be had, because this machine has no such address: set HOST to one that it has`,
  }[String(code)]
  return reason === undefined ? error : new Error(`Port ${port} on ${host} ${reason}.`)
}

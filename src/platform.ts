/** The only file in which a runtime is named: the same program runs on Bun, as a compiled binary, and on Deno. */

export interface Socket<Data> {
  data: Data
  send(text: string): void
  join(topic: string): void
  leave(topic: string): void
  close(code: number, reason: string): void
}

export interface ServeOptions<Data> {
  port: number
  host: string
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

interface BunSocket {
  data: { data: unknown; socket?: Socket<unknown> }
  send(text: string): number
  subscribe(topic: string): void
  unsubscribe(topic: string): void
  close(code: number, reason: string): void
}

interface BunServer {
  port: number
  requestIP(request: Request): { address: string } | null
  upgrade(request: Request, options: { data: BunSocket['data'] }): boolean
  publish(topic: string, text: string): void
  stop(force?: boolean): Promise<void>
}

interface DenoServer {
  addr: { port: number }
  shutdown(): Promise<void>
}

interface Runtimes {
  Bun?: { version: string; serve(options: object): BunServer }
  Deno?: {
    version: { deno: string }
    serve(
      options: object,
      handler: (
        request: Request,
        info: { remoteAddr: { hostname: string } },
      ) => Promise<Response> | Response,
    ): DenoServer
    upgradeWebSocket(
      request: Request,
      options: object,
    ): { socket: WebSocket & { bufferedAmount: number }; response: Response }
  }
}

// The runtime's own types are not needed by a check under the other one.
const { Bun, Deno } = globalThis as unknown as Runtimes

/** The runtime and its version, as in `Bun 1.4.5`. */
export const RUNTIME = Bun ? `Bun ${Bun.version}` : Deno ? `Deno ${Deno.version.deno}` : 'unknown'

/** Starts listening; throws when the port is taken. */
export function serve<Data>(options: ServeOptions<Data>): Listener {
  if (Bun) return serveOnBun(Bun, options)
  if (Deno) return serveOnDeno(Deno, options)
  throw new Error('Tidings runs on Bun or Deno.')
}

function wantsSocket(request: Request): boolean {
  return request.headers.get('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Elysia looks for the path from the eleventh character on, and so misses it behind a host of three characters or
 * fewer (elysiajs/elysia#748).
 */
function withFindablePath(request: Request): Request {
  const slash = request.url.indexOf('/', 8)
  if (slash < 0 || slash > 10) return request
  return new Request(`http://localhost${request.url.slice(slash)}`, request)
}

function serveOnBun<Data>(
  bun: NonNullable<Runtimes['Bun']>,
  options: ServeOptions<Data>,
): Listener {
  const sockets = new Set<Socket<Data>>()
  const wrap = (ws: BunSocket): Socket<Data> =>
    // Bun hands back the data that `upgrade` gave it.
    (ws.data.socket ??= {
      data: ws.data.data,
      send: text => void ws.send(text),
      join: topic => ws.subscribe(topic),
      leave: topic => ws.unsubscribe(topic),
      close: (code, reason) => ws.close(code, reason),
    }) as Socket<Data>
  const server = bun.serve({
    port: options.port,
    hostname: options.host,
    reusePort: false,
    development: false,
    maxRequestBodySize: options.maxBodyBytes,
    idleTimeout: 60,
    fetch(request: Request, self: BunServer) {
      const peer = () => self.requestIP(request)?.address ?? ''
      if (!wantsSocket(request)) return options.fetch(withFindablePath(request), peer)
      return upgradeOnBun(self, options, request, peer)
    },
    error: () => new Response('Internal server error', { status: 500 }),
    websocket: {
      maxPayloadLength: options.maxFrameBytes,
      backpressureLimit: options.maxBufferedBytes,
      closeOnBackpressureLimit: true,
      idleTimeout: 60,
      sendPings: true,
      perMessageDeflate: false,
      open(ws: BunSocket) {
        sockets.add(wrap(ws))
        options.open(wrap(ws))
      },
      message(ws: BunSocket, message: string | Uint8Array) {
        if (typeof message === 'string') options.message(wrap(ws), message)
        else ws.close(1003, 'Text frames only')
      },
      close(ws: BunSocket, code: number) {
        sockets.delete(wrap(ws))
        options.close(wrap(ws), code)
      },
    },
  })
  return {
    port: server.port,
    publish: (topic, text) => server.publish(topic, text),
    async stop() {
      // Bun's stop never resolves while a socket is open (oven-sh/bun#34961).
      for (const socket of [...sockets]) socket.close(1001, 'The server is stopping')
      await server.stop()
    },
  }
}

async function upgradeOnBun<Data>(
  server: BunServer,
  options: ServeOptions<Data>,
  request: Request,
  peer: () => string,
): Promise<Response | undefined> {
  const data = await options.upgrade(withFindablePath(request), peer)
  if (data instanceof Response) return data
  if (server.upgrade(request, { data: { data } })) return undefined
  return new Response('Upgrade Required', { status: 426 })
}

function serveOnDeno<Data>(
  deno: NonNullable<Runtimes['Deno']>,
  options: ServeOptions<Data>,
): Listener {
  const topics = new Map<string, Set<WebSocket>>()
  const sockets = new Set<WebSocket>()
  const send = (ws: WebSocket, text: string) => {
    if (ws.readyState !== WebSocket.OPEN) return
    if (ws.bufferedAmount > options.maxBufferedBytes) ws.close(1013, 'Too slow')
    else ws.send(text)
  }
  const leave = (ws: WebSocket, topic: string) => {
    const members = topics.get(topic)
    members?.delete(ws)
    if (members?.size === 0) topics.delete(topic)
  }
  const join = (ws: WebSocket, topic: string) => {
    const members = topics.get(topic)
    if (members) members.add(ws)
    else topics.set(topic, new Set([ws]))
  }

  function accept(request: Request, data: Data): Response {
    const { socket: ws, response } = deno.upgradeWebSocket(request, { idleTimeout: 60 })
    const joined = new Set<string>()
    const socket: Socket<Data> = {
      data,
      send: text => send(ws, text),
      join(topic) {
        joined.add(topic)
        join(ws, topic)
      },
      leave(topic) {
        joined.delete(topic)
        leave(ws, topic)
      },
      close: (code, reason) => ws.close(code, reason),
    }
    ws.onopen = () => {
      sockets.add(ws)
      options.open(socket)
    }
    ws.onmessage = ({ data: message }: MessageEvent<unknown>) => {
      if (typeof message !== 'string') ws.close(1003, 'Text frames only')
      else if (message.length > options.maxFrameBytes) ws.close(1009, 'Too long')
      else options.message(socket, message)
    }
    ws.onclose = ({ code }) => {
      ws.onclose = null // Deno can say it twice.
      sockets.delete(ws)
      for (const topic of joined) leave(ws, topic)
      options.close(socket, code)
    }
    return response
  }

  const server = deno.serve(
    { port: options.port, hostname: options.host, onListen() {} },
    async (request, info) => {
      const peer = () => info.remoteAddr.hostname
      if (!wantsSocket(request)) return options.fetch(withFindablePath(request), peer)
      const data = await options.upgrade(withFindablePath(request), peer)
      return data instanceof Response ? data : accept(request, data)
    },
  )
  return {
    port: server.addr.port,
    publish(topic, text) {
      for (const ws of topics.get(topic) ?? []) send(ws, text)
    },
    async stop() {
      for (const ws of [...sockets]) ws.close(1001, 'The server is stopping')
      await server.shutdown()
    },
  }
}

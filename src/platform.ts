// The only file in which a runtime is named: the program runs on Bun, as a compiled binary, and on Deno.

import {
  toListenError,
  isWebSocketHandshake,
  withRoutableUrl,
  type Listener,
  type ServeOptions,
  type Socket,
} from './listener.ts'

interface Runtimes {
  Bun?: {
    version: string
    serve(options: object): BunServer
    password: Hasher
    embeddedFiles: readonly (Blob & { name: string })[]
  }
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
/** Whether node:http may keep connections: Deno never tells of a request given up on a kept one. */
export const CAN_REUSE_CONNECTIONS = Bun !== undefined

/** The command that runs this program again, and the arguments before its own. */
export function toSelfCommand(): [command: string, ...words: string[]] {
  const [, main = ''] = process.argv
  // Deno asks for the flag before it shares a port.
  if (Deno) return [process.execPath, 'run', '-A', '--unstable-net', main]
  // A compiled binary has its files inside.
  return main.startsWith('/$bunfs/') ? [process.execPath] : [process.execPath, main]
}

/** The file in the executable whose name ends with `ending`; undefined when there is none. */
export function findEmbeddedFile(ending: string): (Blob & { name: string }) | undefined {
  return Bun?.embeddedFiles.find(({ name }) => name.endsWith(ending))
}

/** The argon2id hash of a password as a PHC string, which means the same on every runtime. */
export async function hashPassword(password: string): Promise<string> {
  if (Bun) return Bun.password.hash(password, { algorithm: 'argon2id', ...ARGON2 })
  const argon2 = await importArgon2()
  return argon2.hash(password, { ...ARGON2, parallelism: 1 })
}

/** Whether `hash` is that of `password`: a malformed one is nobody's. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  if (Bun) return Bun.password.verify(password, hash).catch(() => false)
  const argon2 = await importArgon2()
  return argon2.verify(hash, password).catch(() => false)
}

// KiB of memory, and passes over it: the least that OWASP asks of argon2id.
const ARGON2 = { memoryCost: 19_456, timeCost: 2 }

/** Only Deno needs it. Its name is put together so that no bundler carries its native code along. */
function importArgon2(): Promise<Hasher> {
  return import(['@node-rs', 'argon2'].join('/'))
}

/** Starts listening; throws with a sentence for people when the port cannot be had. */
export function serve<Data>(options: ServeOptions<Data>): Listener {
  try {
    if (Bun) return serveOnBun(Bun, options)
    if (Deno) return serveOnDeno(Deno, options)
  } catch (error) {
    throw toListenError(error, options)
  }
  throw new Error('Tidings runs on Bun or Deno.')
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
      get bufferedBytes() {
        return ws.getBufferedAmount()
      },
    }) as Socket<Data>
  const server = bun.serve({
    port: options.port,
    hostname: options.host,
    reusePort: options.isShared ?? false,
    development: false,
    maxRequestBodySize: options.maxBodyBytes,
    idleTimeout: 60,
    fetch(request: Request, self: BunServer) {
      const peer = () => self.requestIP(request)?.address ?? ''
      if (!isWebSocketHandshake(request)) return options.fetch(withRoutableUrl(request), peer)
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
  const data = await options.upgrade(withRoutableUrl(request), peer)
  if (data instanceof Response) return data
  if (server.upgrade(request, { data: { data } })) return undefined
  return new Response('Upgrade Required', { status: 426 })
}

function serveOnDeno<Data>(
  deno: NonNullable<Runtimes['Deno']>,
  options: ServeOptions<Data>,
): Listener {
  const topics = createTopics<DenoSocket>()
  const sockets = new Set<DenoSocket>()

  function accept(request: Request, data: Data): Response {
    const { socket: ws, response } = deno.upgradeWebSocket(request, { idleTimeout: 60 })
    const joined = new Set<string>()
    let isOver = false
    // Deno can say it twice, and for a peer that takes nothing only when its connection dies.
    const finish = (code: number) => {
      if (isOver) return
      isOver = true
      sockets.delete(one)
      for (const topic of joined) topics.leave(one, topic)
      options.close(socket, code)
    }
    const one: DenoSocket = {
      ws,
      send(text) {
        if (isOver || ws.readyState !== WebSocket.OPEN) return
        if (ws.bufferedAmount <= options.maxBufferedBytes) return ws.send(text)
        ws.close(1013, 'Too slow')
        finish(1013)
      },
    }
    const socket: Socket<Data> = {
      data,
      send: text => one.send(text),
      join(topic) {
        joined.add(topic)
        topics.join(one, topic)
      },
      leave(topic) {
        joined.delete(topic)
        topics.leave(one, topic)
      },
      close: (code, reason) => ws.close(code, reason),
      get bufferedBytes() {
        return ws.bufferedAmount
      },
    }
    ws.onopen = () => {
      sockets.add(one)
      options.open(socket)
    }
    ws.onmessage = ({ data: message }: MessageEvent<unknown>) => {
      if (isOver) return
      if (typeof message !== 'string') ws.close(1003, 'Text frames only')
      else if (Buffer.byteLength(message) > options.maxFrameBytes) ws.close(1009, 'Too long')
      else options.message(socket, message)
    }
    ws.onerror = () => finish(1006)
    ws.onclose = ({ code }) => finish(code)
    return response
  }

  const server = deno.serve(
    {
      port: options.port,
      hostname: options.host,
      reusePort: options.isShared ?? false,
      onListen() {},
    },
    async (request, info) => {
      const peer = () => info.remoteAddr.hostname
      if (!isWebSocketHandshake(request)) return options.fetch(withRoutableUrl(request), peer)
      const data = await options.upgrade(withRoutableUrl(request), peer)
      return data instanceof Response ? data : accept(request, data)
    },
  )
  return {
    port: server.addr.port,
    publish(topic, text) {
      for (const one of topics.listSubscribers(topic)) one.send(text)
    },
    async stop() {
      for (const { ws } of [...sockets]) ws.close(1001, 'The server is stopping')
      await server.shutdown()
    },
  }
}

// The parts of the runtimes that are used here. A check under one runtime does not know the types of the other.

interface BunSocket {
  data: { data: unknown; socket?: Socket<unknown> }
  send(text: string): number
  subscribe(topic: string): void
  unsubscribe(topic: string): void
  close(code: number, reason: string): void
  getBufferedAmount(): number
}

interface BunServer {
  port: number
  requestIP(request: Request): { address: string } | null
  upgrade(request: Request, options: { data: BunSocket['data'] }): boolean
  publish(topic: string, text: string): void
  stop(force?: boolean): Promise<void>
}

interface Hasher {
  hash(password: string, options: object): Promise<string>
  /** Bun takes the password first, the package the hash. */
  verify(first: string, second: string): Promise<boolean>
}

interface DenoSocket {
  ws: WebSocket
  send(text: string): void
}

interface DenoServer {
  addr: { port: number }
  shutdown(): Promise<void>
}

/** Subscriptions by topic, for a runtime without topics of its own. */
interface Topics<Member> {
  join(member: Member, topic: string): void
  leave(member: Member, topic: string): void
  listSubscribers(topic: string): Iterable<Member>
}

function createTopics<Member>(): Topics<Member> {
  const topics = new Map<string, Set<Member>>()
  return {
    join(member, topic) {
      const members = topics.get(topic)
      if (members) members.add(member)
      else topics.set(topic, new Set([member]))
    },
    leave(member, topic) {
      const members = topics.get(topic)
      members?.delete(member)
      if (members?.size === 0) topics.delete(topic)
    },
    listSubscribers: topic => topics.get(topic) ?? [],
  }
}

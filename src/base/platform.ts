// The only file that depends on a runtime. The program runs on Bun, as a compiled binary, and on
// Deno.

import { constants } from 'node:os'
import { once } from './functions.ts'
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
    dlopen(
      library: string,
      symbols: Record<string, { parameters: string[]; result: string }>,
    ): { symbols: Symbols }
    UnsafePointerView: new (pointer: unknown) => { getInt32(): number }
  }
}

/** Functions of the C library, with the arguments and results that they were declared with. */
type Symbols = Record<string, (...args: number[]) => unknown>

/** The part of `bun:ffi` that this file uses. */
interface BunFfi {
  dlopen(
    library: string,
    symbols: Record<string, { args: string[]; returns: string }>,
  ): { symbols: Symbols }
  read: { i32(pointer: unknown, offset: number): number }
}

// Typed here, because each runtime's type check does not know the types of the other.
const { Bun, Deno } = globalThis as unknown as Runtimes

/** The runtime and its version, such as `Bun 1.4.5`. */
export const RUNTIME = Bun ? `Bun ${Bun.version}` : Deno ? `Deno ${Deno.version.deno}` : 'unknown'
/** False on Deno, where an aborted request on a reused node:http connection is never reported. */
export const CAN_REUSE_CONNECTIONS = Bun !== undefined

/** Returns the command that runs this program again, and the arguments that come first. */
export function toSelfCommand(): [command: string, ...words: string[]] {
  const [, main = ''] = process.argv
  // Deno requires this flag to share a port.
  if (Deno) return [process.execPath, 'run', '-A', '--unstable-net', main]
  // The files of a compiled binary are inside the executable.
  return main.startsWith('/$bunfs/') ? [process.execPath] : [process.execPath, main]
}

/** Finds the file in the executable whose name ends with `ending`. */
export function findEmbeddedFile(ending: string): (Blob & { name: string }) | undefined {
  return Bun?.embeddedFiles.find(({ name }) => name.endsWith(ending))
}

/**
 * Locks an open file with flock(2), without waiting. The lock belongs to the open file: every
 * process that inherits it holds the lock, which ends when the last of them has ended or closed it.
 * Returns false when the file is locked through another open file. Throws where files cannot be
 * locked.
 */
export function lockFile(fd: number, kind: 'shared' | 'exclusive'): boolean {
  const { flock, readErrno } = openLibc()
  if (flock(fd, FLOCK[kind] | FLOCK_NO_WAIT) === 0) return true
  const errno = readErrno()
  if (errno === constants.errno.EWOULDBLOCK) return false
  const name = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0]
  throw new Error(`flock failed: ${name ?? errno}`)
}

// The same numbers on Linux and macOS.
const FLOCK = { shared: 1, exclusive: 2 }
const FLOCK_NO_WAIT = 4

/** Opens the C library. No runtime offers a lock that a child process inherits. */
const openLibc = once((): Libc => {
  const failures: unknown[] = []
  for (const library of LIBC) {
    try {
      return loadLibc(library)
    } catch (error) {
      failures.push(error)
    }
  }
  throw new Error(`The C library cannot be loaded: ${failures.join('; ')}`)
})

interface Libc {
  flock(fd: number, operation: number): number
  readErrno(): number
}

const LIBC =
  process.platform === 'darwin'
    ? ['libSystem.B.dylib']
    : ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]
/** Returns the address of errno. */
const ERRNO = process.platform === 'darwin' ? '__error' : '__errno_location'

function loadLibc(library: string): Libc {
  if (Deno) {
    const { symbols } = Deno.dlopen(library, {
      flock: { parameters: ['i32', 'i32'], result: 'i32' },
      [ERRNO]: { parameters: [], result: 'pointer' },
    })
    return {
      flock: (fd, operation) => Number(symbols['flock']?.(fd, operation)),
      readErrno: () => new Deno.UnsafePointerView(symbols[ERRNO]?.()).getInt32(),
    }
  }
  // Not imported by name, because Deno does not have it.
  const ffi = process.getBuiltinModule('bun:ffi') as unknown as BunFfi
  const { symbols } = ffi.dlopen(library, {
    flock: { args: ['i32', 'i32'], returns: 'i32' },
    [ERRNO]: { args: [], returns: 'ptr' },
  })
  return {
    flock: (fd, operation) => Number(symbols['flock']?.(fd, operation)),
    readErrno: () => ffi.read.i32(symbols[ERRNO]?.(), 0),
  }
}

/** Returns the argon2id hash of a password as a PHC string, which every runtime can verify. */
export async function hashPassword(password: string): Promise<string> {
  if (Bun) return Bun.password.hash(password, { algorithm: 'argon2id', ...ARGON2 })
  const argon2 = await importArgon2()
  return argon2.hash(password, { ...ARGON2, parallelism: 1 })
}

/** Resolves to true when `hash` is a hash of `password`. A malformed hash matches nothing. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  if (Bun) return Bun.password.verify(password, hash).catch(() => false)
  const argon2 = await importArgon2()
  return argon2.verify(hash, password).catch(() => false)
}

// KiB of memory and number of passes: the minimum that OWASP recommends for argon2id.
const ARGON2 = { memoryCost: 19_456, timeCost: 2 }

/**
 * Imports argon2 for Deno. The name is computed, so that bundlers do not include its native code.
 */
function importArgon2(): Promise<Hasher> {
  return import(['@node-rs', 'argon2'].join('/'))
}

/**
 * How long a connection stays open without a request, in seconds. Proxies must close theirs first:
 * otherwise, one can send a request while the server closes the connection, and answers 502. nginx
 * and most load balancers close after 60 s, Traefik after 90 s, and Caddy after 120 s.
 */
const IDLE_S = 240

/** Starts listening. Throws an error that says what to do when the port is not available. */
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
    // `ws.data` is the object that `upgrade` passed to Bun.
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
    idleTimeout: IDLE_S,
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
  const sockets = new Set<DenoSocket<Data>>()

  function accept(request: Request, data: Data): Response {
    const { socket: ws, response } = deno.upgradeWebSocket(request, { idleTimeout: 60 })
    let isOver = false
    // Deno can report the close twice. For a stalled peer it reports it only when the connection
    // dies.
    const onEnd = (code: number) => {
      if (isOver) return
      isOver = true
      sockets.delete(socket)
      options.close(socket, code)
    }
    const socket: DenoSocket<Data> = {
      data,
      topics: new Set(),
      send(text) {
        if (isOver || ws.readyState !== WebSocket.OPEN) return
        if (ws.bufferedAmount <= options.maxBufferedBytes) return ws.send(text)
        ws.close(1013, 'Too slow')
        onEnd(1013)
      },
      join: topic => void socket.topics.add(topic),
      leave: topic => void socket.topics.delete(topic),
      close: (code, reason) => ws.close(code, reason),
      get bufferedBytes() {
        return ws.bufferedAmount
      },
    }
    ws.onopen = () => {
      sockets.add(socket)
      options.open(socket)
    }
    ws.onmessage = ({ data: message }: MessageEvent<unknown>) => {
      if (isOver) return
      if (typeof message !== 'string') ws.close(1003, 'Text frames only')
      else if (Buffer.byteLength(message) > options.maxFrameBytes) ws.close(1009, 'Too long')
      else options.message(socket, message)
    }
    ws.onerror = () => onEnd(1006)
    ws.onclose = ({ code }) => onEnd(code)
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
      for (const socket of sockets) if (socket.topics.has(topic)) socket.send(text)
    },
    async stop() {
      for (const socket of [...sockets]) socket.close(1001, 'The server is stopping')
      await server.shutdown()
    },
  }
}

// The parts of the runtimes' APIs that this file uses.

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
  /** Bun expects the password first, and the argon2 package expects the hash first. */
  verify(first: string, second: string): Promise<boolean>
}

interface DenoSocket<Data> extends Socket<Data> {
  /** Deno has no topics. */
  topics: Set<string>
}

interface DenoServer {
  addr: { port: number }
  shutdown(): Promise<void>
}

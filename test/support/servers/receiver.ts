import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import type { Certificate } from '../certificates.ts'
import { until } from '../until.ts'
import { listen } from '../loopback.ts'
import { findHeaderProblem } from '../request-head.ts'

/** One request as it arrived. */
export interface Received {
  method: string
  /** The path with the query. */
  path: string
  /** By lower-case name. */
  headers: Record<string, string>
  /** The request line and the header lines, as they arrived. */
  head: string[]
  body: string
  bytes: Buffer
  /** The arrival by performance.now(), in milliseconds. */
  atMs: number
}

/** Ways in which a receiver misbehaves. */
export const FAULTS = [
  /** Sends nothing. */
  'hang',
  /** Sends a header line every 50 ms without end. */
  'slow headers',
  /** Sends 200, then a byte every 50 ms. */
  'drip',
  /** Sends 500 as slowly. */
  'drip 500',
  /** Resets the connection before it answers. */
  'reset',
  /** Sends 200 and half a body, then closes. */
  'cut',
  /** Sends 200 and 48 KB of gzip, which decompress to 50 MB. */
  'bomb',
  /** Sends 200 and 50 MB. */
  'flood',
  /** Sends 200 and headers without end. */
  'endless headers',
  /** Sends 103 Early Hints without end. */
  'endless hints',
  /** Sends bytes that are not HTTP. */
  'garbage',
] as const
export type Fault = (typeof FAULTS)[number]

/** A response with a body. */
interface Answer {
  status: number
  headers?: Record<string, string>
  body?: string
}

/** The reaction to a request. */
type Reply = Answer | Fault | ((received: Received) => Answer | Fault | Promise<Answer>)

export interface Receiver extends AsyncDisposable {
  /** By address, without a trailing slash. */
  url: string
  port: number
  /** Every request whose body is complete, in order of arrival. */
  received: Received[]
  /** All connections so far, including silent ones. */
  readonly connections: number
  /** Open connections. */
  readonly open: number
  /** Sets the n-th reply to `path` (without its query); the last one repeats. */
  script(path: string, ...replies: Reply[]): void
  /** Resolves when `count` requests have arrived: in all, or at `path`. */
  until(count: number, path?: string): Promise<void>
  close(): Promise<void>
}

export interface ReceiverOptions {
  /** Speaks TLS with this certificate. */
  certificate?: Certificate
  /** The reply on paths without a script: 200 by default. */
  reply?: Reply
}

const BOMB = gzipSync(Buffer.alloc(50_000_000))
const REQUEST_LINE = /^([A-Z]+) ([\x21-\x7e]+) HTTP\/1\.1$/
const FIELD_LINE = /^([^:]*):[ \t]*([^\r\n]*?)[ \t]*$/
const CHUNK = Buffer.alloc(64 * 1024, 'x')

/** A real receiver on loopback that follows scripts, also faulty ones. */
export async function startReceiver({
  certificate,
  reply = { status: 200, body: 'ok' },
}: ReceiverOptions = {}): Promise<Receiver> {
  const received: Received[] = []
  const scripts = new Map<string, Reply[]>()
  const sockets = new Set<Socket>()
  let connections = 0

  function onRequest(socket: Socket, request: Received): void {
    received.push(request)
    const [path = ''] = request.path.split('?')
    const replies = scripts.get(path) ?? [reply]
    const next = (replies.length > 1 ? replies.shift() : replies[0]) ?? reply
    const made = typeof next === 'function' ? next(request) : next
    if (made instanceof Promise) void made.then(answer => perform(socket, answer))
    else perform(socket, made)
  }

  const server: Server = certificate
    ? createTlsServer(certificate, socket => readRequests(socket, onRequest))
    : createServer(socket => readRequests(socket, onRequest))
  server.on(certificate ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('connection', () => connections++)
  server.on('tlsClientError', () => {})
  const port = await listen(server)

  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return {
    url: `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    received,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    script: (path, ...replies) => void scripts.set(path, replies),
    until: (count, path) =>
      until(
        () =>
          received.filter(one => path === undefined || one.path.split('?')[0] === path).length >=
          count,
      ),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Reads requests one after the other, each with a body of Content-Length bytes. */
function readRequests(
  socket: Socket,
  onRequest: (socket: Socket, request: Received) => void,
): void {
  let bytes = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    for (;;) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = bytes.subarray(0, end).toString('latin1').split('\r\n')
      const [, method = '', path = ''] = REQUEST_LINE.exec(head[0] ?? '') ?? []
      const fields = head.slice(1).map(line => [...(FIELD_LINE.exec(line) ?? ['', line, ''])])
      const rawHeaders = fields.flatMap(([, name = '', value = '']) => [name, value])
      const problem = method === '' ? 'RFC 9112 §3: request line' : findHeaderProblem(rawHeaders)
      const headers = Object.fromEntries(
        fields.map(([, name = '', value = '']) => [name.toLowerCase(), value]),
      )
      const length = headers['content-length'] ?? '0'
      if (problem !== undefined || !/^\d+$/.test(length)) {
        answer(socket, { status: 400, body: problem ?? 'RFC 9110 §8.6: Content-Length' })
        return void socket.end()
      }
      const stop = end + 4 + Number(length)
      if (bytes.length < stop) return
      const body = bytes.subarray(end + 4, stop)
      bytes = bytes.subarray(stop)
      onRequest(socket, {
        method,
        path,
        headers,
        head,
        body: body.toString(),
        bytes: body,
        atMs: performance.now(),
      })
    }
  })
}

function perform(socket: Socket, reply: Answer | Fault): void {
  if (typeof reply === 'object') return answer(socket, reply)
  switch (reply) {
    case 'hang':
      return
    case 'slow headers':
      return drip(socket, 'HTTP/1.1 200 OK\r\n', 'x-slow: 1\r\n')
    case 'drip':
      return drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', '.')
    case 'drip 500':
      return drip(socket, 'HTTP/1.1 500 Oh\r\nContent-Length: 100000\r\n\r\n', '.')
    case 'reset':
      return void socket.resetAndDestroy()
    case 'cut':
      return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of')
    case 'bomb':
      answer(socket, { status: 200, headers: { 'Content-Encoding': 'gzip' } }, BOMB)
      return
    case 'flood':
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n')
      return pour(socket, CHUNK, 50_000_000)
    case 'endless headers':
      socket.write('HTTP/1.1 200 OK\r\n')
      return pour(socket, Buffer.from(`x-more: ${'y'.repeat(1000)}\r\n`), 100_000_000)
    case 'endless hints':
      return pour(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n'), 100_000_000)
    case 'garbage':
      return void socket.end('SSH-2.0-OpenSSH_9.2p1\r\n\r\n')
  }
}

function answer(socket: Socket, { status, headers = {}, body = '' }: Answer, bytes?: Buffer): void {
  const content = bytes ?? Buffer.from(body)
  const all = { 'Content-Length': String(content.length), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    Buffer.concat([Buffer.from(`HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`), content]),
  )
}

function drip(socket: Socket, head: string, drop: string): void {
  socket.write(head)
  const timer = setInterval(() => socket.write(drop), 50)
  socket.on('close', () => clearInterval(timer))
}

/** Writes `piece` repeatedly, as fast as the other side reads. */
function pour(socket: Socket, piece: Buffer, bytes: number): void {
  let left = bytes
  const write = () => {
    while (left > 0 && !socket.destroyed) {
      left -= piece.length
      if (!socket.write(piece)) return void socket.once('drain', write)
    }
  }
  write()
}

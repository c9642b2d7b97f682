import { connect } from 'node:net'

/** One complete response on a connection. */
export interface RawAnswer {
  status: number
  /** By lower-case name. */
  headers: Map<string, string>
  text: string
  // `any`: tests check every field that they read.
  body: any
}

/** A TCP connection, for bytes that `fetch` cannot or will not send. */
export interface RawConnection extends Disposable {
  write(bytes: string | Uint8Array): void
  /** Writes, and resolves when the kernel has accepted the bytes. */
  flush(bytes: Uint8Array): Promise<void>
  /** Resolves with the next complete response; undefined if the connection ends without one. */
  answer(): Promise<RawAnswer | undefined>
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>
}

export function openRaw(url: string): RawConnection {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const closed = Promise.withResolvers<void>()
  let received: Buffer = Buffer.alloc(0)
  let wake = () => {}
  // The answer to HEAD has no body, whatever its Content-Length.
  let isHead = false
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  socket.on('error', () => {})
  socket.on('end', () => socket.end())
  socket.on('close', () => {
    closed.resolve()
    wake()
  })
  return {
    write(bytes) {
      isHead ||= typeof bytes === 'string' && bytes.startsWith('HEAD ')
      socket.write(bytes)
    },
    flush: bytes =>
      new Promise((resolve, reject) =>
        socket.write(bytes, error => (error ? reject(error) : resolve())),
      ),
    async answer() {
      while (true) {
        const found = takeAnswer(received, isHead)
        if (found) {
          received = found.rest
          return found.answer
        }
        if (socket.destroyed) return undefined
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        await promise
      }
    },
    closed: closed.promise,
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Sends one request exactly as written, and returns its answer. */
export async function sendRaw(
  url: string,
  request: string | Uint8Array,
): Promise<RawAnswer | undefined> {
  using connection = openRaw(url)
  connection.write(request)
  return await connection.answer()
}

/** Returns the text of a request: its first line, header lines and body. */
export function toRequest(first: string, headers: readonly string[], body = ''): string {
  return `${[first, ...headers].join('\r\n')}\r\n\r\n${body}`
}

function takeAnswer(bytes: Buffer, isHead: boolean) {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers = new Map(
    lines.map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const stop = end + 4 + (isHead ? 0 : Number(headers.get('content-length') ?? 0))
  if (bytes.length < stop) return undefined
  const text = bytes.subarray(end + 4, stop).toString()
  const body = text.startsWith('{') ? JSON.parse(text) : undefined
  const answer: RawAnswer = { status: Number(first.split(' ')[1]), headers, text, body }
  return { answer, rest: bytes.subarray(stop) }
}

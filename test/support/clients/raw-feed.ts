import { connect } from 'node:net'
import { toRequest } from './raw-http.ts'

/** A minimal client that opens a socket, follows a project, and reads only on request. */
export interface StalledClient {
  /** Reads until `isEnough`, or until the server closes; returns all texts so far. */
  read(isEnough?: (texts: readonly string[]) => boolean): Promise<string[]>
  /** The code with which the server has closed the socket: 1006 without a close frame. */
  closeCode(): number
  destroy(): void
}

export async function openStalled(
  url: string,
  { cookie, message }: { cookie: string; message: object },
): Promise<StalledClient> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await new Promise(resolve => socket.once('connect', resolve))
  socket.write(toHandshake(url, '/api/feed', cookie))
  await new Promise(resolve => socket.once('data', resolve))
  socket.pause()
  socket.write(toFrame(JSON.stringify(message)))
  let closeCode = 1006
  return {
    read: (isEnough = () => false) =>
      new Promise(resolve => {
        const texts: string[] = []
        const read = createFrameReader(({ opcode, payload }) => {
          if (opcode === 1) texts.push(payload.toString())
          if (opcode === 8) closeCode = payload.readUInt16BE(0)
          if (opcode === 8 || isEnough(texts)) resolve(texts)
        })
        socket.on('data', read)
        socket.on('close', () => resolve(texts))
        socket.resume()
      }),
    closeCode: () => closeCode,
    destroy: () => void socket.destroy(),
  }
}

/** Returns the request that opens a socket, as a page of the server sends it. */
export function toHandshake(url: string, path: string, cookie?: string): string {
  const { host, origin } = new URL(url)
  return toRequest(`GET ${path} HTTP/1.1`, [
    `Host: ${host}`,
    `Origin: ${origin}`,
    ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ])
}

/** Splits the server's bytes into frames, which are neither masked nor fragmented. */
export function createFrameReader(take: (frame: { opcode: number; payload: Buffer }) => void) {
  let rest = Buffer.alloc(0)
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 2) {
      const short = rest[1]! & 0x7f
      const head = short === 127 ? 10 : short === 126 ? 4 : 2
      if (rest.length < head) return
      const length =
        short === 127
          ? Number(rest.readBigUInt64BE(2))
          : short === 126
            ? rest.readUInt16BE(2)
            : short
      if (rest.length < head + length) return
      const frame = { opcode: rest[0]! & 0x0f, payload: rest.subarray(head, head + length) }
      rest = rest.subarray(head + length)
      take(frame)
    }
  }
}

/** Returns a masked text frame of up to 64 KiB; the mask is zero. */
export function toFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const isShort = payload.length < 126
  const head = Buffer.alloc(isShort ? 6 : 8)
  head[0] = 0x81
  head[1] = 0x80 | (isShort ? payload.length : 126)
  if (!isShort) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}

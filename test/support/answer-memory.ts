// Measures the memory of the guarded client while many receivers answer. As a program, it is that
// client: it sends its requests, and prints its memory in MB.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createEgress } from '../../src/http/egress/egress.ts'
import { listen } from './loopback.ts'

/** How receivers answer. Each answer lasts until the client ends it. */
const ANSWERS = {
  /** Sends a body that is almost as long as what is kept. It is the control. */
  honest: ['HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n' + 'x'.repeat(16_000), ''],
  /** Sends chunks of one byte, each after a long extension. */
  extensions: [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    `1;${'x'.repeat(16_000)}\r\na\r\n`,
  ],
  /** Sends chunks of one byte. */
  chunks: ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\na\r\n'.repeat(1_000)],
  trailers: [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n',
    'X-Long: yes\r\n'.repeat(1_000),
  ],
  hints: ['', `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(15_000)}\r\n\r\n`],
  headers: ['HTTP/1.1 200 OK\r\n', 'X-Long: yes\r\n'.repeat(1_000)],
  'line breaks': ['', '\r\n'.repeat(8_000)],
  /** Sends a body without an end. */
  flood: ['HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(64_000)],
} as const satisfies Record<string, readonly [string, string]>

export type AnswerName = keyof typeof ANSWERS
export const HOSTILE = Object.keys(ANSWERS).filter(name => name !== 'honest') as AnswerName[]

/** The memory of a client in MB: before its requests, at its peak, and after them. */
export interface AnswerMemory {
  before: number
  peak: number
  after: number
}

const TIMEOUT_MS = 4_000

/** Measures a new process that sends `requests` at once. */
export async function measureAnswers(
  names: readonly AnswerName[],
  requests: number,
): Promise<AnswerMemory> {
  const sockets = new Set<Socket>()
  let next = 0
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    const [head, piece] = ANSWERS[names[next++ % names.length] ?? 'honest']
    socket.once('data', () => {
      socket.write(head)
      if (piece !== '') pour(socket, Buffer.from(piece))
    })
  })
  const port = await listen(server)
  const child = spawn(process.execPath, [import.meta.path, String(port), String(requests)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  server.close()
  for (const socket of sockets) socket.destroy()
  return JSON.parse(output) as AnswerMemory
}

function pour(socket: Socket, piece: Buffer): void {
  while (!socket.destroyed) {
    if (!socket.write(piece)) return void socket.once('drain', () => pour(socket, piece))
  }
}

async function run(port: number, requests: number): Promise<AnswerMemory> {
  const rss = () => Math.round(process.memoryUsage.rss() / 1e6)
  const egress = createEgress({
    allowCidrs: ['127.0.0.0/8'],
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  })
  const before = rss()
  let peak = before
  const sampling = setInterval(() => (peak = Math.max(peak, rss())), 5)
  await Promise.all(
    Array.from({ length: requests }, (_, n) =>
      egress.send({ url: `http://h${n}.test:${port}/`, body: '{}', timeoutMs: TIMEOUT_MS }),
    ),
  )
  peak = Math.max(peak, rss())
  clearInterval(sampling)
  egress.close()
  ;(globalThis as unknown as { Bun?: { gc(force: boolean): void } }).Bun?.gc(true)
  return { before, peak, after: rss() }
}

if (import.meta.main) {
  const [port = 0, requests = 0] = process.argv.slice(2).map(Number)
  console.log(JSON.stringify(await run(port, requests)))
  process.exit(0)
}

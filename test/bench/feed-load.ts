// The load of the feed bench, in its own process: `bun feed-load.ts '<json of LoadJob>'`. It prints
// READY, then answers each line of input with one line.
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { createHttpClient } from '../support/clients/http-client.ts'
import { createFrameReader, toFrame } from '../support/clients/raw-feed.ts'
import type { LoadJob } from './feed-process.ts'

const job = JSON.parse(process.argv[2] ?? '') as LoadJob
/** Shorter messages belong to the protocol. */
const LEAST_BYTES = 200
const POSTERS = 32

let received = 0
let wanted = Infinity
let reached = () => {}
const arrivals = new Map<string, number>()
const stalled = new Set<Socket>()
let closed = 0

await openAll()
console.log('READY')
for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...words] = line.split(' ')
  const numbers = words.map(Number)
  if (command === 'expect') await expectDeliveries(numbers[0] ?? 0)
  else if (command === 'post') await post(numbers[0] ?? 0, numbers[1] ?? 0)
  else if (command === 'closed') await countClosed()
}

async function openAll(): Promise<void> {
  for (let opened = 0; opened < job.sockets;) {
    const some = Math.min(50, job.sockets - opened)
    await Promise.all(Array.from({ length: some }, (_, nth) => openOne(opened + nth)))
    opened += some
  }
}

/** Resolves when the socket is ready for messages. */
function openOne(nth: number): Promise<void> {
  const { hostname, port, host, origin } = new URL(job.url)
  const cookie = job.cookies[nth % job.cookies.length]
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', reject)
    socket.on('close', () => closed++)
    socket.on('connect', () => {
      const lines = [
        `GET ${job.path} HTTP/1.1`,
        `Host: ${host}`,
        `Origin: ${origin}`,
        ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        '\r\n',
      ]
      socket.write(lines.join('\r\n'))
    })
    const read = createFrameReader(({ opcode, payload }) => {
      if (opcode === 9) return void socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
      if (opcode !== 1) return
      if (payload.length >= LEAST_BYTES) return count(payload)
      const text = payload.toString()
      for (const { after, say } of job.script)
        if (text.startsWith(after)) socket.write(toFrame(say))
      if (text === '2') socket.write(toFrame('3'))
      if (!text.startsWith(job.ready)) return
      if (job.isStalled) stalled.add(socket.pause())
      resolve()
    })
    let isOpen = false
    socket.on('data', (chunk: Buffer) => {
      if (isOpen) return read(chunk)
      const end = chunk.indexOf('\r\n\r\n')
      isOpen = true
      if (!chunk.toString('latin1').startsWith('HTTP/1.1 101'))
        return reject(new Error(chunk.toString('latin1').slice(0, 500)))
      read(chunk.subarray(end + 4))
      if (job.greeting !== undefined) socket.write(toFrame(job.greeting))
      if (job.ready === '') resolve()
    })
  })
}

function count(payload: Buffer): void {
  received++
  if (job.isTimed) {
    const name = /"intent":"(\w+)"/.exec(payload.toString('latin1'))?.[1]
    if (name) arrivals.set(name, performance.now())
  }
  if (received >= wanted) reached()
}

async function expectDeliveries(deliveries: number): Promise<void> {
  received = 0
  wanted = deliveries
  const startedMs = performance.now()
  console.log('GO')
  await new Promise<void>(resolve => {
    reached = resolve
    setTimeout(resolve, 60_000)
  })
  wanted = Infinity
  console.log(JSON.stringify({ ms: performance.now() - startedMs, received }))
}

/** A socket that is not read does not see its end: the stalled ones read for a moment. */
async function countClosed(): Promise<void> {
  for (const socket of stalled) socket.resume()
  await new Promise(resolve => setTimeout(resolve, 2_000))
  console.log(JSON.stringify({ closed }))
}

/**
 * Posts at a fixed rate, regardless of answer times; returns the delay of each event to a socket.
 */
async function post(perSecond: number, seconds: number): Promise<void> {
  const sent = new Map<string, number>()
  const answered: number[] = []
  const clients = Array.from({ length: POSTERS }, () => createHttpClient(job.url))
  const startedMs = performance.now()
  const total = perSecond * seconds
  let next = 0
  let failed = 0
  arrivals.clear()
  await Promise.all(
    clients.map(async client => {
      while (next < total) {
        const nth = next++
        const dueMs = startedMs + (nth * 1000) / perSecond
        const waitMs = dueMs - performance.now()
        if (waitMs > 0) await new Promise(resolve => setTimeout(resolve, waitMs))
        // Measured from sending: a late timer is not the server's fault.
        const sentMs = performance.now()
        sent.set(`n${nth}`, sentMs)
        const { status } = await client.request('POST', job.post?.path ?? '', {
          headers: { ...job.post?.headers, 'Content-Type': 'application/json' },
          body: JSON.stringify({
            channelName: `channel ${nth % 20}`,
            title: `New payment ${nth}`,
            description: 'A customer paid for a plan',
            tags: ['billing', 'plan'],
            userId: `user_${nth % 100}`,
            metadata: { intent: `n${nth}`, plan: 'pro', currency: 'EUR' },
          }),
        })
        answered.push(performance.now() - sentMs)
        if (status !== 201) failed++
      }
    }),
  )
  const endMs = performance.now() + 5_000
  while (arrivals.size < total - failed && performance.now() < endMs)
    await new Promise(resolve => setTimeout(resolve, 10))
  for (const client of clients) client.close()
  const took = [...sent]
    .flatMap(([name, atMs]) => (arrivals.get(name) ?? NaN) - atMs)
    .filter(ms => !Number.isNaN(ms))
    .sort((a, b) => a - b)
  const at = (share: number) => took[Math.floor(share * (took.length - 1))]
  console.log(
    JSON.stringify({
      p50: at(0.5),
      p99: at(0.99),
      max: at(1),
      answerP50: answered.sort((a, b) => a - b)[Math.floor(answered.length / 2)],
      lost: total - failed - took.length,
      failed,
      perSecond: total / ((performance.now() - startedMs) / 1000),
    }),
  )
}

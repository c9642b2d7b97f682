// The load of the feed bench, in its own process: `bun feed-load.ts '<json of LoadJob>'`. It prints
// READY. Each line of input is a number of messages to wait for.
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { createFrameReader, toFrame, toHandshake } from '../support/clients/raw-feed.ts'
import type { LoadJob } from './feed-process.ts'

const job = JSON.parse(process.argv[2] ?? '') as LoadJob
/** Shorter messages belong to the protocol. */
const LEAST_BYTES = 200

let received = 0
let wanted = Infinity
let reached = () => {}

await openAll()
console.log('READY')
for await (const line of createInterface({ input: process.stdin })) {
  await expectDeliveries(Number(line))
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
  const { hostname, port } = new URL(job.url)
  const cookie = job.cookies[nth % job.cookies.length]
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', reject)
    socket.on('connect', () => socket.write(toHandshake(job.url, job.path, cookie)))
    const read = createFrameReader(({ opcode, payload }) => {
      if (opcode === 9) return void socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
      if (opcode !== 1) return
      if (payload.length >= LEAST_BYTES) return count()
      const text = payload.toString()
      for (const { after, say } of job.script)
        if (text.startsWith(after)) socket.write(toFrame(say))
      if (text === '2') socket.write(toFrame('3'))
      if (!text.startsWith(job.ready)) return
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
      if (job.ready === '') resolve()
    })
  })
}

function count(): void {
  received++
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

// A reference for the feed: `bun feed-candidate.ts publish | socket.io`. Sends each line of input,
// `<messages> <text>`, so many times to every socket. It uses bare publish of the runtime, or the
// broadcast of socket.io.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { listen } from '../support/loopback.ts'

/** Yields after this many characters like our own feed, so that sockets can flush. */
const TURN_CHARACTERS = 128 * 1024

const { port, send } = process.argv[2] === 'publish' ? startPublish() : await startSocketIo()
console.log(`READY ${port}`)
for await (const line of createInterface({ input: process.stdin })) {
  const space = line.indexOf(' ')
  const text = line.slice(space + 1)
  let characters = 0
  for (let nth = 0; nth < Number(line.slice(0, space)); nth++) {
    send(text)
    characters += text.length
    if (characters < TURN_CHARACTERS) continue
    characters = 0
    await new Promise<void>(resolve => setImmediate(resolve))
  }
}

function startPublish() {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, self) {
      return self.upgrade(request) ? undefined : new Response('A socket, please', { status: 426 })
    },
    websocket: {
      open: socket => void socket.subscribe('all'),
      message() {},
      perMessageDeflate: false,
    },
  })
  return { port: server.port, send: (text: string) => void server.publish('all', text) }
}

async function startSocketIo() {
  // A computed name, which the type checker does not resolve: only the bench installs socket.io.
  const name = ['socket', 'io'].join('.')
  const { Server } = await import(name)
  const http = createServer()
  const io = new Server(http, { transports: ['websocket'], perMessageDeflate: false })
  const port = await listen(http)
  return { port, send: (text: string) => void io.emit('event', JSON.parse(text)) }
}

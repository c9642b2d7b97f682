// Runs the platform seam alone: prints its port and serves sockets until SIGTERM.
import { serve } from '../../../src/base/platform.ts'

const listener = serve<{ name: string }>({
  host: '127.0.0.1',
  port: 0,
  maxBodyBytes: 1024,
  maxFrameBytes: 64,
  maxBufferedBytes: 1024,
  fetch: (request, peer) => Response.json({ path: new URL(request.url).pathname, peer: peer() }),
  upgrade(request) {
    const name = new URL(request.url).searchParams.get('name')
    return name === null ? new Response('Who is it?', { status: 403 }) : { name }
  },
  open(socket) {
    socket.join('all')
    socket.send(`welcome ${socket.data.name}`)
  },
  message(socket, text) {
    if (text === 'leave') socket.leave('all')
    else if (text === 'close') socket.close(1008, 'as asked')
    else listener.publish('all', `${socket.data.name}: ${text}`)
  },
  close(socket, code) {
    listener.publish('all', `${socket.data.name} left with ${code}`)
  },
})
console.log(`PORT ${listener.port}`)
process.once('SIGTERM', () => void listener.stop().then(() => process.exit(0)))

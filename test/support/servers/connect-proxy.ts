import { connect, createServer, type Socket } from 'node:net'
import { listen } from '../loopback.ts'

interface Options {
  /** The status of each answer. With 200, the proxy opens the tunnel. */
  status?: number
  /** The request without this header is answered with 407. */
  authorization?: string
}

export interface ConnectProxy extends AsyncDisposable {
  port: number
  /** The destinations that it was asked for. */
  destinations: string[]
  /** The open connections to it. */
  readonly open: number
}

/** Starts a proxy on loopback. It knows CONNECT alone, and resolves every name to loopback. */
export async function startConnectProxy({
  status = 200,
  authorization,
}: Options = {}): Promise<ConnectProxy> {
  const destinations: string[] = []
  const sockets = new Set<Socket>()

  function track(socket: Socket): Socket {
    sockets.add(socket)
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  }

  const server = createServer(client => {
    track(client)
    let head = ''
    client.on('data', function read(bytes: Buffer) {
      head += bytes.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      client.off('data', read)
      const [, host = '', port = ''] = /^CONNECT (\S+):(\d+) HTTP\/1\.1\r\n/.exec(head) ?? []
      if (host === '') return void client.end('HTTP/1.1 405 CONNECT only\r\n\r\n')
      destinations.push(`${host}:${port}`)
      const isKnown =
        authorization === undefined ||
        head.includes(`\r\nProxy-Authorization: ${authorization}\r\n`)
      if (!isKnown || status !== 200) {
        client.end(`HTTP/1.1 ${isKnown ? status : 407} No\r\nContent-Length: 4\r\n\r\nNo\r\n`)
        return
      }
      const target = track(connect(Number(port), '127.0.0.1'))
      target.on('connect', () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n')
        client.pipe(target).pipe(client)
      })
      target.on('error', () => client.end('HTTP/1.1 502 No\r\n\r\n'))
      client.on('close', () => target.destroy())
      target.on('close', () => client.end())
    })
  })
  const port = await listen(server)
  return {
    port,
    destinations,
    get open() {
      return sockets.size
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

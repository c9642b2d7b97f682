import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { until } from './until.ts'

/** Starts a server on a free port of loopback; resolves with the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // The address of a TCP server is never a string.
  return (server.address() as AddressInfo).port
}

/** Resolves with a port of loopback that no server uses. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}

/** Resolves once a server listens on `port` of loopback. */
export function untilListening(port: number): Promise<void> {
  return until(async () => {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isOpen
  })
}

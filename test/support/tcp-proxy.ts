import { connect, createServer, type Socket } from 'node:net'
import { createReader, type Message } from './postgres-wire.ts'
import { listen } from './loopback.ts'

/** Stops a conversation with Postgres at the first matching message. */
interface Trap {
  from: 'client' | 'server'
  /** The message's type byte: `S` is the client's Sync, `Z` the server's ReadyForQuery. */
  type: string
  /** The connection's application_name. */
  application: string
}

/** A message that is held back, with all later ones of its direction. */
export interface Held {
  message: Message
  /** Forwards it and the later ones, up to the next trap. */
  pass(): void
  /** Forwards it, then closes the client's side; the server's side stays until `release`. */
  passAndCut(): void
  /** Closes both sides: the message never arrives. */
  cut(): void
  /** Resets the client's side. */
  reset(): void
}

/**
 * A TCP proxy on loopback between a server and its Postgres, which breaks connections by script.
 */
export interface TcpProxy {
  /** The database URL with the proxy's address. */
  url: string
  /** The number of connections through it. */
  opened: number
  /** Holds back the next matching message, once; resolves when it came. */
  trap(trap: Trap): Promise<Held>
  /** Ends every connection, in good order (`cut`) or with a reset. */
  cut(): void
  reset(): void
  /** New connections open but pass nothing; existing ones never recover. */
  blackHole(): void
  /** Closes new connections at once, like a balancer without a live server. */
  hangUp(): void
  /** Delays every chunk in both directions. */
  delay(ms: number): void
  /** Lets new connections work again. */
  heal(): void
  close(): Promise<void>
}

interface Pair {
  client: Socket
  server: Socket
  isSwallowing: boolean
}

/** Starts a proxy to the Unix socket of `databaseUrl`. */
export async function startTcpProxy(databaseUrl: string): Promise<TcpProxy> {
  const target = new URL(databaseUrl)
  const pairs = new Set<Pair>()
  const traps: { trap: Trap; resolve(held: Held): void }[] = []
  let mode: 'open' | 'black hole' | 'hang up' = 'open'
  let delayMs = 0
  let opened = 0

  const listener = createServer(client => {
    opened++
    client.on('error', () => {})
    if (mode === 'hang up') return void client.destroy()
    const server = connect(`${target.searchParams.get('host')}/.s.PGSQL.5432`)
    server.on('error', () => {})
    const pair: Pair = { client, server, isSwallowing: mode === 'black hole' }
    pairs.add(pair)
    join(pair)
  })
  const port = await listen(listener)
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${port}`
  url.searchParams.delete('host')

  function join(pair: Pair): void {
    const { client, server } = pair
    let application = ''
    const relay = (from: 'client' | 'server', to: Socket) => {
      const read = createReader(from)
      let held: Message[] | undefined
      const send = ({ bytes }: Message) => {
        if (pair.isSwallowing || to.destroyed) return
        if (delayMs === 0) to.write(bytes)
        else setTimeout(() => to.destroyed || to.write(bytes), delayMs)
      }
      const handle = (message: Message) => {
        if (held) return void held.push(message)
        const index = traps.findIndex(
          ({ trap }) =>
            trap.from === from && trap.type === message.type && trap.application === application,
        )
        if (index < 0) return send(message)
        held = []
        const pass = () => {
          const later = held ?? []
          held = undefined
          send(message)
          // Another trap may be set for one of them.
          for (const one of later) handle(one)
        }
        traps.splice(index, 1)[0]?.resolve({
          message,
          pass,
          passAndCut() {
            pass()
            client.destroy()
          },
          cut: () => end(pair),
          reset() {
            client.resetAndDestroy()
            server.destroy()
          },
        })
      }
      return (chunk: Buffer) => {
        for (const message of read(chunk)) {
          application ||= message.application
          handle(message)
        }
      }
    }
    client.on('data', relay('client', server))
    server.on('data', relay('server', client))
    // Bytes of a client that left still reach the server, as in a network.
    client.on('close', () => pair.isSwallowing || server.end())
    server.on('close', () => {
      pairs.delete(pair)
      if (!pair.isSwallowing) client.end()
    })
  }

  function end({ client, server }: Pair): void {
    client.destroy()
    server.destroy()
  }

  return {
    url: url.href,
    get opened() {
      return opened
    },
    trap: trap => new Promise(resolve => traps.push({ trap, resolve })),
    cut: () => pairs.forEach(end),
    reset() {
      for (const { client, server } of pairs) {
        client.resetAndDestroy()
        server.destroy()
      }
    },
    blackHole() {
      mode = 'black hole'
      for (const pair of pairs) pair.isSwallowing = true
    },
    hangUp() {
      mode = 'hang up'
      pairs.forEach(end)
    },
    delay: ms => void (delayMs = ms),
    heal() {
      mode = 'open'
      delayMs = 0
    },
    close: () =>
      new Promise(resolve => {
        listener.close(() => resolve())
        pairs.forEach(end)
      }),
  }
}

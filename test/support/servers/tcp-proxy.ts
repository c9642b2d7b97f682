import { connect, createServer, type Socket } from 'node:net'
import {
  createReader,
  createStatementTracker,
  IMPOSSIBLE_EXECUTE,
  toErrorResponse,
  toQuery,
  type Message,
} from '../postgres-wire.ts'
import { listen } from '../loopback.ts'

/** Stops a conversation with Postgres at the first matching message. */
interface Trap {
  from: 'client' | 'server'
  /** The message's type byte: `S` is the client's Sync, `Z` the server's ReadyForQuery. */
  type: string
  /** The connection's application_name. */
  application: string
}

/** A message on its way. */
export interface Passing {
  from: 'client' | 'server'
  type: string
  /** The connection's application_name; empty for its startup message. */
  application: string
  /** The statement that the client executes. */
  statement: string
}

/** A message that is held back, with all later ones of its direction. */
export interface Held {
  message: Message
  /** The process id of the session in Postgres; undefined before it has begun. */
  pid: number | undefined
  /** Resolves when Postgres has ended the session, and so the transaction. */
  ended: Promise<void>
  /** Forwards it and the later ones, up to the next trap. */
  pass(): void
  /** Forwards this one alone, then closes the client's side. */
  passAndCut(): void
  /** Closes both sides: the message never arrives. */
  cut(): void
  /** Forwards half of it, then closes the client's side. */
  cutWithin(): void
  /**
   * Makes Postgres answer a message of the client with an error of this SQLSTATE, in place of what
   * the message asks for.
   */
  fail(sqlState: string): void
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
  /** Calls `isDue` for each message, and holds back the first one for which it returns true. */
  watch(isDue: (passing: Passing) => boolean): Watch
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

/** An ongoing watch for a message. */
interface Watch {
  /** Resolves when the message came. */
  held: Promise<Held>
  end(): void
}

interface Pair {
  client: Socket
  server: Socket
  isSwallowing: boolean
}

interface Watcher {
  isDue(passing: Passing): boolean
  resolve(held: Held): void
}

/** Starts a proxy to the Unix socket of `databaseUrl`. */
export async function startTcpProxy(databaseUrl: string): Promise<TcpProxy> {
  const target = new URL(databaseUrl)
  const pairs = new Set<Pair>()
  const watchers = new Set<Watcher>()
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
    const track = createStatementTracker()
    const ended = new Promise<void>(resolve => server.on('close', resolve))
    let application = ''
    let statement = ''
    let pid: number | undefined
    // The SQLSTATE of the next error of Postgres.
    let sqlState: string | undefined
    // True until the Sync of a message that was replaced by a query.
    let isSkipping = false
    const relay = (from: 'client' | 'server', to: Socket) => {
      const read = createReader(from)
      let held: Message[] | undefined
      const send = ({ bytes, type }: Message) => {
        if (from === 'server' && type === 'E' && sqlState !== undefined) {
          bytes = toErrorResponse('ERROR', sqlState)
          sqlState = undefined
        }
        if (pair.isSwallowing || to.destroyed) return
        if (delayMs === 0) to.write(bytes)
        else setTimeout(() => to.destroyed || to.write(bytes), delayMs)
      }
      const handle = (message: Message) => {
        if (held) return void held.push(message)
        if (from === 'client' && isSkipping) {
          isSkipping = message.type !== 'S'
          return
        }
        if (from === 'client') statement = track(message)
        else if (message.type === 'K') pid = message.bytes.readUInt32BE(5)
        const passing = { from, type: message.type, application, statement }
        const watcher = watchers.values().find(({ isDue }) => isDue(passing))
        if (!watcher) return send(message)
        watchers.delete(watcher)
        held = []
        const pass = () => passAs(message)
        const passAs = (first: Message) => {
          const later = held ?? []
          held = undefined
          send(first)
          // Another trap may be set for one of them.
          for (const one of later) handle(one)
        }
        watcher.resolve({
          message,
          pid,
          ended,
          pass,
          passAndCut() {
            send(message)
            client.destroy()
          },
          // Postgres still handles the messages before this one.
          cut: () => client.destroy(),
          cutWithin() {
            const half = message.bytes.subarray(0, Math.ceil(message.bytes.length / 2))
            send({ ...message, bytes: half })
            client.destroy()
          },
          fail(state) {
            if (message.type === '') return void client.end(toErrorResponse('FATAL', state))
            sqlState = state
            if (statement === 'commit') {
              // Postgres ends the transaction if its commit fails.
              isSkipping = true
              passAs({ ...message, bytes: toQuery('rollback; select 1 / 0') })
            } else if (message.type === 'Q') {
              passAs({ ...message, bytes: toQuery('select 1 / 0') })
            } else {
              // After an error, Postgres skips the messages up to the next Sync.
              const skipped = Buffer.concat([IMPOSSIBLE_EXECUTE, message.bytes])
              passAs({ ...message, bytes: skipped })
            }
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

  function watch(isDue: Watcher['isDue']): Watch {
    const { promise, resolve } = Promise.withResolvers<Held>()
    const watcher = { isDue, resolve }
    watchers.add(watcher)
    return { held: promise, end: () => void watchers.delete(watcher) }
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
    trap: ({ from, type, application }) =>
      watch(
        passing =>
          passing.from === from && passing.type === type && passing.application === application,
      ).held,
    watch,
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

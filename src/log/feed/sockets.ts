import { setTimeout as sleep } from 'node:timers/promises'
import { toId } from '../../base/ids.ts'
import { feedCloses } from '../../base/metrics.ts'
import type { Socket } from '../../base/listener.ts'
import type { Grant } from './access.ts'
import type { SocketSession } from './socket-guard.ts'
import type { Subscription } from './hub.ts'
import { parseMessage, toMessage } from './messages.ts'
import { logFailure } from './read-events.ts'
import type { Watch } from './watch.ts'
import { CLOSE_REASONS } from './schema.ts'
import { subscribe, toNotFound, type SubscribeOptions, type Subscriber } from './subscribe.ts'

const MAX_SOCKETS = 10_000
const MAX_SOCKETS_PER_ACCOUNT = 20
const MESSAGE_WINDOW_MS = 10_000
const MAX_MESSAGES_PER_WINDOW = 20
const MAX_INVALID_MESSAGES = 5
/** Half of the unsent bytes at which the platform closes a socket. */
const BACKED_UP_BYTES = 512 * 1024
const CLOSE_STEP_MS = 50
/** A new epoch closes 10,000 sockets in this time, because each client reads its page again. */
const RENEWAL_MS = 5_000

/** An open socket. */
interface Connection extends Subscriber {
  windowEndsMs: number
  messages: number
  invalidMessages: number
  /** True if much data was unsent at the last check. */
  isBackedUp: boolean
}

type CloseReason = keyof typeof CLOSE_REASONS

export interface SocketsOptions extends SubscribeOptions {
  watch: Pick<Watch, 'add' | 'remove'>
  getEpoch(): string
  /** The build of the dashboard that this server serves. */
  build: string
}

export type Sockets = ReturnType<typeof createSockets>

/** Keeps the open sockets of this process: their limits, messages and subscriptions. */
export function createSockets(options: SocketsOptions) {
  const { lanes, watch, getEpoch, build } = options
  const connections = new Map<Socket<SocketSession>, Connection>()
  const byAccount = new Map<string, Set<Connection>>()

  function end(connection: Connection, why: CloseReason): void {
    if (connection.isClosed) return
    forget(connection)
    closeSocket(connection, why)
  }

  function forget(connection: Connection): void {
    connection.isClosed = true
    const { socket, subscriptions } = connection
    watch.remove(socket)
    if (!connections.delete(socket)) return
    const { accountId } = socket.data
    const others = byAccount.get(accountId)
    others?.delete(connection)
    if (others?.size === 0) byAccount.delete(accountId)
    for (const { subscription } of subscriptions.values()) if (subscription) remove(subscription)
    subscriptions.clear()
  }

  function remove(subscription: Subscription): void {
    for (const { hub } of lanes) hub.remove(subscription)
  }

  function receive(connection: Connection, text: string): void {
    const { socket, subscriptions } = connection
    if (!countMessage(connection)) return end(connection, 'tooManyMessages')
    const parsed = parseMessage(text)
    if ('problem' in parsed) {
      if (++connection.invalidMessages >= MAX_INVALID_MESSAGES) return end(connection, 'invalid')
      return socket.send(toMessage({ type: 'error', code: 'invalid', message: parsed.problem }))
    }
    if ('type' in parsed) return watch.add(socket)
    const { message, projectId, filters } = parsed
    if (projectId === undefined) return socket.send(toNotFound(message.project))
    const subscription = subscriptions.get(projectId)?.subscription
    subscriptions.delete(projectId)
    if (subscription) remove(subscription)
    if (message.type === 'unsubscribe') return
    subscribe(options, connection, { message, projectId, filters }).catch(error =>
      fail(connection, error),
    )
  }

  function fail(connection: Connection, error: unknown): void {
    logFailure('Handling a socket message failed', error)
    end(connection, 'failed')
  }

  return {
    get hasRoom() {
      return connections.size < MAX_SOCKETS
    },
    get size() {
      return connections.size
    },

    open(socket: Socket<SocketSession>): void {
      const counters = { windowEndsMs: 0, messages: 0, invalidMessages: 0, isBackedUp: false }
      const connection = { socket, subscriptions: new Map(), isClosed: false, ...counters }
      const { accountId } = socket.data
      const others = byAccount.get(accountId) ?? new Set()
      connections.set(socket, connection)
      byAccount.set(accountId, others.add(connection))
      if (others.size > MAX_SOCKETS_PER_ACCOUNT || connections.size > MAX_SOCKETS)
        return end(connection, 'tooMany')
      socket.send(toMessage({ type: 'hello', epoch: getEpoch(), build }))
    },

    message(socket: Socket<SocketSession>, text: string): void {
      const connection = connections.get(socket)
      if (!connection) return
      try {
        receive(connection, text)
      } catch (error) {
        fail(connection, error)
      }
    },

    close(socket: Socket<SocketSession>, code: number): void {
      const connection = connections.get(socket)
      if (!connection) return
      // The platform closes a backed-up socket without a close frame (1006). Only the last check
      // tells that from a client that disconnected.
      const isTooSlow = code === 1013 || (code === 1006 && connection.isBackedUp)
      feedCloses.inc({ reason: isTooSlow ? 'tooSlow' : 'client' })
      forget(connection)
    },

    closeAll(why: CloseReason): void {
      for (const connection of [...connections.values()]) end(connection, why)
    },

    /** Closes the sockets evenly over `durationMs`, also those that open meanwhile. */
    drain: (durationMs: number): Promise<void> =>
      spread(durationMs, left => {
        const all = [...connections.values()]
        for (const one of all.slice(0, Math.ceil(all.length / left))) end(one, 'draining')
      }),

    /** Ends all subscriptions for a new epoch, and then closes the sockets that are open now. */
    renew(): void {
      const all = [...connections.values()]
      for (const connection of all) forget(connection)
      void spread(RENEWAL_MS, left => {
        for (const one of all.splice(0, Math.ceil(all.length / left))) closeSocket(one, 'restored')
      })
    },

    /** Closes the socket of a subscription. */
    closeSocketOf({ socket }: Subscription, why: CloseReason): void {
      // `subscribe` passes only sockets of this map.
      const connection = connections.get(socket as Socket<SocketSession>)
      if (connection) end(connection, why)
    },

    /** Lists the access that open sockets need. `revoke` closes the sockets of one grant. */
    listGrants(): { grants: Grant[]; revoke(index: number): void } {
      const held = listHeld(connections.values())
      return {
        grants: held.map(({ grant }) => grant),
        revoke: index => held[index]?.connections.forEach(one => end(one, 'noAccess')),
      }
    },

    /** Tells an account's sockets that follow a project that its read marks have changed. */
    sendUnread(accountId: string, projectId: string): void {
      const text = toMessage({ type: 'unread', project: toId('prj', projectId) })
      for (const { socket, subscriptions } of byAccount.get(accountId) ?? [])
        if (subscriptions.get(projectId)?.subscription) socket.send(text)
    },

    /** Sends a heartbeat to each socket without subscriptions. */
    sendHeartbeats(): void {
      const text = toMessage({ type: 'heartbeat' })
      for (const { socket, subscriptions } of connections.values())
        if (subscriptions.size === 0) socket.send(text)
    },
  }
}

function closeSocket({ socket }: Connection, why: CloseReason): void {
  const [code, reason] = CLOSE_REASONS[why]
  feedCloses.inc({ reason: why })
  socket.close(code, reason)
}

/** Calls `step` for `durationMs`, with the number of the calls that are left. */
async function spread(durationMs: number, step: (left: number) => void): Promise<void> {
  for (let left = Math.ceil(durationMs / CLOSE_STEP_MS); left > 0; left--) {
    step(left)
    await sleep(CLOSE_STEP_MS, undefined, { ref: false })
  }
}

/** Returns false if the client has sent too many messages within 10 seconds. */
function countMessage(connection: Connection): boolean {
  const nowMs = performance.now()
  if (nowMs >= connection.windowEndsMs) {
    connection.windowEndsMs = nowMs + MESSAGE_WINDOW_MS
    connection.messages = 0
  }
  return ++connection.messages <= MAX_MESSAGES_PER_WINDOW
}

/** Lists the grants that connections hold, each once. Notes which of them are backed up. */
function listHeld(connections: Iterable<Connection>) {
  const held = new Map<string, { grant: Grant; connections: Connection[] }>()
  for (const connection of connections) {
    const { socket, subscriptions } = connection
    const { sessionId } = socket.data
    connection.isBackedUp = socket.bufferedBytes > BACKED_UP_BYTES
    const open = [...subscriptions].filter(([, { subscription }]) => subscription)
    const projectIds = open.length > 0 ? open.map(([projectId]) => projectId) : [null]
    for (const projectId of projectIds) {
      const key = `${sessionId} ${projectId}`
      const one = held.get(key) ?? { grant: { sessionId, projectId }, connections: [] }
      held.set(key, one)
      one.connections.push(connection)
    }
  }
  return [...held.values()]
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../../database/pool.ts'
import { readPatternsOfTexts } from '../events/text-patterns.ts'
import { toId } from '../../base/ids.ts'
import { feedCloses } from '../../base/metrics.ts'
import type { Socket } from '../../base/listener.ts'
import { findLogState, READER_ROLES, type Grant, type LogState } from './access.ts'
import { compileFilter, listTexts } from './filter.ts'
import type { SocketSession } from './socket-guard.ts'
import type { Hub, Subscription } from './hub.ts'
import { parseMessage, toMessage } from './messages.ts'
import { logFailure } from './read-events.ts'
import type { Replay } from './replay.ts'
import type { Watch } from './watch.ts'
import { CLOSE_REASONS, type GapReason, type Subscribe } from './schema.ts'

const MAX_SOCKETS = 10_000
const MAX_SOCKETS_PER_ACCOUNT = 20
const MAX_SUBSCRIPTIONS_PER_SOCKET = 10
const MESSAGE_WINDOW_MS = 10_000
const MAX_MESSAGES_PER_WINDOW = 20
const MAX_INVALID_MESSAGES = 5
/** Half of the unsent bytes at which the platform closes a socket. */
const BACKED_UP_BYTES = 512 * 1024
const RETRY_MS = 500

/** An open socket. */
interface Connection {
  socket: Socket<SocketSession>
  /** By the uuid of the project. `subscription` is absent while it is being started. */
  subscriptions: Map<string, { subscription?: Subscription }>
  isClosed: boolean
  windowEndsMs: number
  messages: number
  invalidMessages: number
  /** True if much data was unsent at the last check. */
  isBackedUp: boolean
}

type CloseReason = keyof typeof CLOSE_REASONS

export interface SocketsOptions {
  pool: Pool
  hub: Hub
  replay: Replay
  watch: Pick<Watch, 'add' | 'remove'>
  getEpoch(): string
  /** Called when a subscription has started. */
  onSubscribed(projectId: string): void
}

/** Keeps the open sockets of this process: their limits, messages and subscriptions. */
export function createSockets(options: SocketsOptions) {
  const { pool, hub, replay, watch, getEpoch, onSubscribed } = options
  const connections = new Map<Socket<SocketSession>, Connection>()
  const byAccount = new Map<string, Set<Connection>>()

  function end(connection: Connection, why: CloseReason): void {
    if (connection.isClosed) return
    const [code, reason] = CLOSE_REASONS[why]
    feedCloses.inc({ reason: why })
    forget(connection)
    connection.socket.close(code, reason)
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
    for (const { subscription } of subscriptions.values())
      if (subscription) hub.remove(subscription)
    subscriptions.clear()
  }

  function receive(connection: Connection, text: string): void {
    const { socket, subscriptions } = connection
    const nowMs = performance.now()
    if (nowMs >= connection.windowEndsMs) {
      connection.windowEndsMs = nowMs + MESSAGE_WINDOW_MS
      connection.messages = 0
    }
    if (++connection.messages > MAX_MESSAGES_PER_WINDOW) return end(connection, 'tooManyMessages')
    const parsed = parseMessage(text)
    if ('problem' in parsed) {
      if (++connection.invalidMessages >= MAX_INVALID_MESSAGES) return end(connection, 'invalid')
      return socket.send(toMessage({ type: 'error', code: 'invalid', message: parsed.problem }))
    }
    if ('type' in parsed) return watch.add(socket)
    const { message, projectId } = parsed
    if (projectId === undefined) return socket.send(toNotFound(message.project))
    const subscription = subscriptions.get(projectId)?.subscription
    subscriptions.delete(projectId)
    if (subscription) hub.remove(subscription)
    if (message.type === 'unsubscribe') return
    openSubscription(connection, { message, projectId }).catch(error => fail(connection, error))
  }

  function fail(connection: Connection, error: unknown): void {
    logFailure('Handling a socket message failed', error)
    end(connection, 'failed')
  }

  /** Starts the subscription that a client requests. `receive` has ended the earlier one. */
  async function openSubscription(
    connection: Connection,
    { message, projectId }: { message: Subscribe; projectId: string },
  ): Promise<void> {
    const { socket, subscriptions } = connection
    const refuse = (text: string) => {
      subscriptions.delete(projectId)
      socket.send(text)
    }
    const tooMany = (text: string) =>
      refuse(
        toMessage({ type: 'error', code: 'too_many', message: text, project: message.project }),
      )
    if (subscriptions.size >= MAX_SUBSCRIPTIONS_PER_SOCKET)
      return tooMany(`A socket follows at most ${MAX_SUBSCRIPTIONS_PER_SOCKET} projects`)
    const pending: { subscription?: Subscription } = {}
    subscriptions.set(projectId, pending)
    // Meanwhile the client may have sent another request, or disconnected.
    const isWanted = () => !connection.isClosed && subscriptions.get(projectId) === pending
    const found = await findStart(connection, { message, projectId, isWanted })
    if (!found || !isWanted()) return

    const { state, patterns } = found
    if (!state || !READER_ROLES.includes(state.role)) return refuse(toNotFound(message.project))
    const project = toId('prj', projectId)
    const filter = compileFilter(message.filters ?? {}, patterns)
    const subscription: Subscription = { socket, projectId, project, filter, cursor: 0 }
    if (!hub.add(subscription, state.head))
      return tooMany('The project has too many subscriptions with different filters')
    pending.subscription = subscription
    const gap = findGap(message, state)
    const after = message.after ?? null
    // The hub's position may be behind the head of the log.
    const position = hub.toPosition(projectId) ?? state.head
    const isFromNow = after === null || gap === 'epoch' || gap === 'ahead'
    const head = isFromNow ? position : Math.max(position, state.head)
    subscription.cursor = isFromNow ? position : after
    socket.send(toMessage({ type: 'subscribed', project, head, recovered: gap === undefined }))
    if (gap) socket.send(toMessage({ type: 'gap', project, reason: gap, head }))
    onSubscribed(projectId)
    await replay(subscription, state.organizationId)
  }

  /** Reads what a subscription needs to start. Retries while the client waits for it. */
  async function findStart(
    { socket }: Connection,
    {
      message,
      projectId,
      isWanted,
    }: { message: Subscribe; projectId: string; isWanted(): boolean },
  ): Promise<{ state: LogState | undefined; patterns: Map<string, string[]> } | undefined> {
    const { sessionId } = socket.data
    const texts = listTexts(message.filters)
    while (isWanted()) {
      try {
        return await pool.run(async sql => ({
          patterns: await readPatternsOfTexts(sql, texts),
          state: await findLogState(sql, { sessionId, projectId }),
        }))
      } catch (error) {
        logFailure('Starting a subscription failed', error)
        await sleep(RETRY_MS)
      }
    }
    return undefined
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
      socket.send(toMessage({ type: 'hello', epoch: getEpoch() }))
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

    closeOldest(count: number, why: CloseReason): void {
      for (const connection of [...connections.values()].slice(0, count)) end(connection, why)
    },

    /** Closes the socket of a subscription. */
    closeSocketOf({ socket }: Subscription, why: CloseReason): void {
      // `openSubscription` passes only sockets of this map.
      const connection = connections.get(socket as Socket<SocketSession>)
      if (connection) end(connection, why)
    },

    /** Lists the access that open sockets need. `revoke` closes the sockets of one grant. */
    listGrants(): { grants: Grant[]; revoke(index: number): void } {
      const held = new Map<string, { grant: Grant; connections: Connection[] }>()
      for (const connection of connections.values()) {
        const { sessionId } = connection.socket.data
        connection.isBackedUp = connection.socket.bufferedBytes > BACKED_UP_BYTES
        const open = [...connection.subscriptions].filter(([, { subscription }]) => subscription)
        const projectIds = open.length > 0 ? open.map(([projectId]) => projectId) : [null]
        for (const projectId of projectIds) {
          const key = `${sessionId} ${projectId}`
          const one = held.get(key) ?? { grant: { sessionId, projectId }, connections: [] }
          held.set(key, one)
          one.connections.push(connection)
        }
      }
      const all = [...held.values()]
      return {
        grants: all.map(({ grant }) => grant),
        revoke: index => all[index]?.connections.forEach(one => end(one, 'noAccess')),
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

function toNotFound(project: string): string {
  return toMessage({ type: 'error', code: 'not_found', message: 'No project has this id', project })
}

/** Returns why events are missing between those that the client has and those that follow. */
function findGap({ after, epoch }: Subscribe, state: LogState): GapReason | undefined {
  if (after === null || after === undefined) return undefined
  if (epoch !== undefined && epoch !== state.epoch) return 'epoch'
  if (after > state.head) return 'ahead'
  return after > 0 && after < state.expiredSeq ? 'retention' : undefined
}

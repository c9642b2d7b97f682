import type { Pool } from '../db/pool.ts'
import { toId } from '../ids.ts'
import { feedCloses } from '../metrics.ts'
import type { Socket } from '../listener.ts'
import { findLogState, READER_ROLES, type Grant, type LogState } from './access.ts'
import { compileFilter } from './filter.ts'
import type { SocketSession } from './socket-guard.ts'
import type { Hub, Subscription } from './hub.ts'
import { parseMessage, toMessage } from './messages.ts'
import { logFailure, readLexemes } from './read-events.ts'
import type { Replay } from './replay.ts'
import { CLOSE_REASONS, type GapReason, type Subscribe } from './schema.ts'

const MAX_SOCKETS = 10_000
const MAX_SOCKETS_PER_ACCOUNT = 20
const MAX_STREAMS_PER_SOCKET = 10
const WINDOW_MS = 10_000
const MAX_MESSAGES_PER_WINDOW = 20
const MAX_INVALID_MESSAGES = 5
/** Half of the waiting bytes at which the platform closes a socket. */
const BACKED_UP_BYTES = 512 * 1024
const RETRY_MS = 500

/** An open socket. */
interface Connection {
  socket: Socket<SocketSession>
  /** By the uuid of the project; without a subscription while the stream is being opened. */
  streams: Map<string, { subscription?: Subscription }>
  isClosed: boolean
  windowEndsMs: number
  messages: number
  invalidMessages: number
  /** Whether many bytes waited for the client at the last check. */
  isBackedUp: boolean
}

type CloseReason = keyof typeof CLOSE_REASONS

export interface SocketsOptions {
  pool: Pool
  hub: Hub
  replay: Replay
  getEpoch(): string
  /** Called when a stream has started. */
  onSubscribed(projectId: string): void
}

/** The open sockets of this process: their limits, their messages and their streams. */
export function createSockets({ pool, hub, replay, getEpoch, onSubscribed }: SocketsOptions) {
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
    const { socket, streams } = connection
    if (!connections.delete(socket)) return
    const { accountId } = socket.data
    const others = byAccount.get(accountId)
    others?.delete(connection)
    if (others?.size === 0) byAccount.delete(accountId)
    for (const { subscription } of streams.values()) if (subscription) hub.remove(subscription)
    streams.clear()
  }

  function receive(connection: Connection, text: string): void {
    const { socket, streams } = connection
    const nowMs = performance.now()
    if (nowMs >= connection.windowEndsMs) {
      connection.windowEndsMs = nowMs + WINDOW_MS
      connection.messages = 0
    }
    if (++connection.messages > MAX_MESSAGES_PER_WINDOW) return end(connection, 'tooManyMessages')
    const parsed = parseMessage(text)
    if ('problem' in parsed) {
      if (++connection.invalidMessages >= MAX_INVALID_MESSAGES) return end(connection, 'invalid')
      return socket.send(toMessage({ type: 'error', code: 'invalid', message: parsed.problem }))
    }
    const { message, projectId } = parsed
    if (projectId === undefined) return socket.send(toNotFound(message.project))
    const subscription = streams.get(projectId)?.subscription
    streams.delete(projectId)
    if (subscription) hub.remove(subscription)
    if (message.type === 'unsubscribe') return
    openStream(connection, { message, projectId }).catch(error => fail(connection, error))
  }

  function fail(connection: Connection, error: unknown): void {
    logFailure('A socket failed', error)
    end(connection, 'failed')
  }

  /** Opens the stream that a client asks for; the earlier one of the project has ended. */
  async function openStream(
    connection: Connection,
    { message, projectId }: { message: Subscribe; projectId: string },
  ): Promise<void> {
    const { socket, streams } = connection
    const refuse = (text: string) => {
      streams.delete(projectId)
      socket.send(text)
    }
    const tooMany = (text: string) =>
      refuse(
        toMessage({ type: 'error', code: 'too_many', message: text, project: message.project }),
      )
    if (streams.size >= MAX_STREAMS_PER_SOCKET)
      return tooMany(`At most ${MAX_STREAMS_PER_SOCKET} at a time`)
    const stream: { subscription?: Subscription } = {}
    streams.set(projectId, stream)
    // The client may have sent another request meanwhile, or be gone.
    const isWanted = () => !connection.isClosed && streams.get(projectId) === stream
    const found = await findStart(connection, { message, projectId, isWanted })
    if (!found || !isWanted()) return

    const { state, lexemes } = found
    if (!state || !READER_ROLES.includes(state.role)) return refuse(toNotFound(message.project))
    const project = toId('prj', projectId)
    const filter = compileFilter(message.filters ?? {}, lexemes)
    const subscription: Subscription = { socket, projectId, project, filter, cursor: 0 }
    if (!hub.add(subscription, state.head))
      return tooMany('The project is followed with too many different filters')
    stream.subscription = subscription
    const gap = findGap(message, state)
    const after = message.after ?? null
    // The hub publishes from its position on, which may be behind the head of the log.
    const position = hub.toPosition(projectId) ?? state.head
    const isFromNow = after === null || gap === 'epoch' || gap === 'ahead'
    const head = isFromNow ? position : Math.max(position, state.head)
    subscription.cursor = isFromNow ? position : after
    socket.send(toMessage({ type: 'subscribed', project, head, recovered: gap === undefined }))
    if (gap) socket.send(toMessage({ type: 'gap', project, reason: gap, head }))
    onSubscribed(projectId)
    await replay(subscription, socket.data.accountId)
  }

  /** Reads what a stream needs to start, and retries while the client waits for it. */
  async function findStart(
    { socket }: Connection,
    {
      message,
      projectId,
      isWanted,
    }: { message: Subscribe; projectId: string; isWanted(): boolean },
  ): Promise<{ state: LogState | undefined; lexemes: string[] | undefined } | undefined> {
    const { sessionId } = socket.data
    const text = message.filters?.text
    while (isWanted()) {
      try {
        const lexemes =
          text === undefined ? undefined : await pool.run(sql => readLexemes(sql, text))
        return {
          state: await pool.run(sql => findLogState(sql, { sessionId, projectId })),
          lexemes,
        }
      } catch (error) {
        logFailure('A stream was not opened', error)
        await new Promise(resolve => setTimeout(resolve, RETRY_MS))
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
      const connection = { socket, streams: new Map(), isClosed: false, ...counters }
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
      // The platform ends a full socket without a close frame, so the last check is the only sign of the reason.
      const isTooSlow = code === 1013 || (code === 1006 && connection.isBackedUp)
      feedCloses.inc({ reason: isTooSlow ? 'tooSlow' : 'client' })
      forget(connection)
    },

    closeAll(why: CloseReason): void {
      for (const connection of [...connections.values()]) end(connection, why)
    },

    /** Closes the socket of a stream. */
    closeSocketOf({ socket }: Subscription, why: CloseReason): void {
      // The socket of every stream is one of these.
      const connection = connections.get(socket as Socket<SocketSession>)
      if (connection) end(connection, why)
    },

    /** Lists the grants that open sockets rely on; `revoke` closes the sockets of one of them. */
    listGrants(): { grants: Grant[]; revoke(index: number): void } {
      const held = new Map<string, { grant: Grant; connections: Connection[] }>()
      for (const connection of connections.values()) {
        const { sessionId } = connection.socket.data
        connection.isBackedUp = connection.socket.bufferedBytes > BACKED_UP_BYTES
        const open = [...connection.streams].filter(([, { subscription }]) => subscription)
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

    /** Notifies the sockets of an account that follow a project of changed read marks. */
    sendUnread(accountId: string, projectId: string): void {
      const text = toMessage({ type: 'unread', project: toId('prj', projectId) })
      for (const { socket, streams } of byAccount.get(accountId) ?? [])
        if (streams.get(projectId)?.subscription) socket.send(text)
    },

    /** Sends a heartbeat to the sockets without streams. */
    sendHeartbeats(): void {
      const text = toMessage({ type: 'heartbeat' })
      for (const { socket, streams } of connections.values())
        if (streams.size === 0) socket.send(text)
    },
  }
}

function toNotFound(project: string): string {
  return toMessage({ type: 'error', code: 'not_found', message: 'No project has this id', project })
}

/** Returns why the events that the client has do not join those that it will get. */
function findGap({ after, epoch }: Subscribe, state: LogState): GapReason | undefined {
  if (after === null || after === undefined) return undefined
  if (epoch !== undefined && epoch !== state.epoch) return 'epoch'
  if (after > state.head) return 'ahead'
  return after > 0 && after < state.expiredSeq ? 'retention' : undefined
}

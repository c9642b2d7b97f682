import type { Pool } from '../db/pool.ts'
import type { Socket } from '../platform/listener.ts'
import { feedCloses } from '../metrics.ts'
import type { Grant } from './access.ts'
import { logFailure } from './failure.ts'
import type { Visitor } from './guard.ts'
import type { Hub, Subscription } from './hub.ts'
import { IDLE_HEARTBEAT, toErrorMessage, toHello, toUnread } from './messages.ts'
import { parseMessage } from './parse.ts'
import { CLOSE } from './schema.ts'
import { openStream, type Replay } from './stream.ts'

const MAX_SOCKETS = 10_000
const PERSON_SOCKETS = 20
const WINDOW_MS = 10_000
const WINDOW_MESSAGES = 20
const MISTAKES = 5
/** Half of what the platform takes before it closes a socket. */
const FULL_BYTES = 512 * 1024

/** An open socket. */
export interface Visit {
  socket: Socket<Visitor>
  /** By the project's uuid; undefined while the stream is being opened. */
  streams: Map<string, { subscription: Subscription | undefined }>
  isOver: boolean
}

interface Counted extends Visit {
  windowMs: number
  messages: number
  mistakes: number
  /** Whether much waited for the client when last looked at. */
  isFull: boolean
}

export interface Visits {
  /** Whether there is room for another socket. */
  readonly hasRoom: boolean
  open(socket: Socket<Visitor>): void
  message(socket: Socket<Visitor>, text: string): void
  close(socket: Socket<Visitor>, code: number): void
  /** Ends every socket. */
  closeAll(why: keyof typeof CLOSE): void
  /** Ends the socket of a stream. */
  closeOf(subscription: Subscription, why: keyof typeof CLOSE): void
  /** Everything that must still be allowed, and the ends of the sockets for which it no longer is. */
  listGrants(): { grants: Grant[]; revoke(index: number): void }
  tellPerson(personId: string, projectId: string, project: string): void
  beat(): void
  readonly size: number
}

export interface VisitsOptions {
  pool: Pool
  hub: Hub
  replay: Replay
  getEpoch(): string
  /** Called when a stream has begun. */
  onStream(projectId: string): void
}

/** The sockets of this process, what each may cost, and what they say. */
export function createVisits(options: VisitsOptions): Visits {
  const { hub, getEpoch } = options
  const visits = new Map<Socket<Visitor>, Counted>()
  const byPerson = new Map<string, Set<Counted>>()

  function end(visit: Visit, why: keyof typeof CLOSE): void {
    if (visit.isOver) return
    const [code, reason] = CLOSE[why]
    feedCloses.inc({ of: why })
    forget(visit)
    visit.socket.close(code, reason)
  }

  /** At once, whenever the platform says that the socket is closed. */
  function forget(visit: Visit): void {
    visit.isOver = true
    const { socket, streams } = visit
    if (!visits.delete(socket)) return
    const { personId } = socket.data
    const others = byPerson.get(personId)
    others?.delete(visit as Counted)
    if (others?.size === 0) byPerson.delete(personId)
    for (const { subscription } of streams.values()) if (subscription) hub.remove(subscription)
    streams.clear()
  }

  function unsubscribe({ streams }: Visit, projectId: string): void {
    const subscription = streams.get(projectId)?.subscription
    streams.delete(projectId)
    if (subscription) hub.remove(subscription)
  }

  function isTooMuch(visit: Counted): boolean {
    const nowMs = performance.now()
    if (nowMs >= visit.windowMs) {
      visit.windowMs = nowMs + WINDOW_MS
      visit.messages = 0
    }
    return ++visit.messages > WINDOW_MESSAGES
  }

  function hear(visit: Counted, text: string): void {
    const { socket } = visit
    if (isTooMuch(visit)) return end(visit, 'tooManyMessages')
    const parsed = parseMessage(text)
    if ('problem' in parsed) {
      if (++visit.mistakes >= MISTAKES) return end(visit, 'invalid')
      return socket.send(toErrorMessage('invalid', parsed.problem))
    }
    const { message, projectId } = parsed
    if (projectId === undefined) {
      return socket.send(toErrorMessage('not_found', 'No project has this id', message.project))
    }
    unsubscribe(visit, projectId)
    if (message.type === 'unsubscribe') return
    openStream(options, visit, { message, projectId }).catch(error => fail(visit, error))
  }

  function fail(visit: Visit, error: unknown): void {
    logFailure('A socket failed', error)
    end(visit, 'failed')
  }

  return {
    get hasRoom() {
      return visits.size < MAX_SOCKETS
    },

    open(socket) {
      const visit: Counted = {
        socket,
        streams: new Map(),
        isOver: false,
        windowMs: 0,
        messages: 0,
        mistakes: 0,
        isFull: false,
      }
      const { personId } = socket.data
      const others = byPerson.get(personId) ?? new Set()
      visits.set(socket, visit)
      byPerson.set(personId, others.add(visit))
      if (others.size > PERSON_SOCKETS || visits.size > MAX_SOCKETS) return end(visit, 'tooMany')
      socket.send(toHello(getEpoch()))
    },

    message(socket, text) {
      const visit = visits.get(socket)
      if (!visit) return
      try {
        hear(visit, text)
      } catch (error) {
        fail(visit, error)
      }
    },

    close(socket, code) {
      const visit = visits.get(socket)
      if (!visit) return
      // Where the platform ends a full socket by itself there is no close frame, and no other sign of why.
      const isTooSlow = code === 1013 || (code === 1006 && visit.isFull)
      feedCloses.inc({ of: isTooSlow ? 'tooSlow' : 'client' })
      forget(visit)
    },

    closeAll(why) {
      for (const visit of [...visits.values()]) end(visit, why)
    },

    closeOf({ socket }, why) {
      // Every stream's socket is one of ours.
      const visit = visits.get(socket as Socket<Visitor>)
      if (visit) end(visit, why)
    },

    listGrants() {
      const held = new Map<string, { grant: Grant; visits: Visit[] }>()
      for (const visit of visits.values()) {
        const { sessionId } = visit.socket.data
        visit.isFull = visit.socket.bufferedBytes > FULL_BYTES
        const open = [...visit.streams].filter(([, { subscription }]) => subscription)
        const projectIds = open.length > 0 ? open.map(([projectId]) => projectId) : [null]
        for (const projectId of projectIds) {
          const key = `${sessionId} ${projectId}`
          const one = held.get(key) ?? { grant: { sessionId, projectId }, visits: [] }
          held.set(key, one)
          one.visits.push(visit)
        }
      }
      const all = [...held.values()]
      return {
        grants: all.map(({ grant }) => grant),
        revoke: index => all[index]?.visits.forEach(visit => end(visit, 'noAccess')),
      }
    },

    tellPerson(personId, projectId, project) {
      for (const { socket, streams } of byPerson.get(personId) ?? []) {
        if (streams.get(projectId)?.subscription) socket.send(toUnread(project))
      }
    },

    beat() {
      for (const { socket, streams } of visits.values()) {
        if (streams.size === 0) socket.send(IDLE_HEARTBEAT)
      }
    },

    get size() {
      return visits.size
    },
  }
}

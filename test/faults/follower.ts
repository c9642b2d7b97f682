import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'

/**
 * A feed client that records all events, and reconnects with its cursor after every disconnection.
 */
export interface Follower {
  name: string
  projectId: string
  /** The only channel that it follows; undefined for all. */
  channelName: string | undefined
  /** The seq from which its record must be complete; undefined until a server has sent it. */
  from: number | undefined
  /** The seq up to which its record is complete. */
  cursor: number
  seen: { seq: number; id: string }[]
  /** Milliseconds from createdAt to arrival, for events made while it was connected. */
  delaysMs: number[]
  connects: number
  /** Violations of the protocol. */
  problems: string[]
  /** Cuts its connection without a close frame. */
  cut(): void
  stop(): Promise<void>
}

export interface FollowerOptions {
  name: string
  projectId: string
  /** The public id. */
  project: string
  cookie: string
  /** Undefined starts with new events. */
  after: number | undefined
  channelName?: string
  /** True if promotions, which lose nothing, begin new epochs. */
  hasPromotions?: boolean
  /** The running servers. */
  servers(): readonly string[]
  random: Random
}

// The same timeout for heartbeats as on a browser's page.
const SILENCE_MS = 32_000

export function startFollower(options: FollowerOptions): Follower {
  const { name, projectId, project, cookie, channelName, hasPromotions } = options
  const { servers, random } = options
  let epoch: string | undefined
  let socket: (WebSocket & { terminate(): void }) | undefined
  let isStopped = false

  const follower: Follower = {
    name,
    projectId,
    channelName,
    from: options.after,
    cursor: options.after ?? 0,
    seen: [],
    delaysMs: [],
    connects: 0,
    problems: [],
    cut: () => socket?.terminate(),
    async stop() {
      isStopped = true
      socket?.close()
      await running
    },
  }

  function take(message: any, connectedMs: number): void {
    switch (message.type) {
      case 'hello':
        if (!hasPromotions && epoch && epoch !== message.epoch)
          note(`the epoch became ${message.epoch}`)
        epoch = message.epoch
        subscribe()
        break
      case 'subscribed':
        // The server did not know the new epoch yet when it sent `hello`.
        if (hasPromotions && !message.recovered) return reconnect()
        if (!message.recovered) note('it was not recovered')
        if (follower.from === undefined) follower.cursor = follower.from = message.head
        if (message.head < follower.cursor) note(`head ${message.head} is behind its cursor`)
        break
      case 'event': {
        const { seq, event } = message
        const { cursor } = follower
        if (seq <= cursor) note(`saw ${seq} after ${cursor}`)
        follower.cursor = seq
        follower.seen.push({ seq, id: event.id })
        const createdMs = Date.parse(event.createdAt)
        if (createdMs > connectedMs) follower.delaysMs.push(Date.now() - createdMs)
        break
      }
      case 'heartbeat':
        // All events up to the head were sent: with a filter this moves the cursor.
        if (message.head !== undefined && follower.from !== undefined) {
          if (channelName === undefined && message.head > follower.cursor)
            note(`heartbeat of ${message.head} at ${follower.cursor}`)
          follower.cursor = Math.max(follower.cursor, message.head)
        }
        break
      case 'deleted':
      case 'restored':
        break
      default:
        note(`was told ${JSON.stringify(message)}`)
    }
  }

  const note = (what: string) => follower.problems.push(`${name}: ${what}`)

  function subscribe(): void {
    const after = follower.from === undefined ? null : follower.cursor
    const filters = channelName === undefined ? {} : { channels: [channelName] }
    socket?.send(JSON.stringify({ type: 'subscribe', project, after, epoch, filters }))
  }

  function reconnect(): void {
    socket?.close()
    socket = undefined
  }

  /** Resolves when the connection has ended. */
  function connect(server: string): Promise<void> {
    return new Promise(resolve => {
      const fresh = new WebSocket(`${server.replace('http', 'ws')}/api/feed`, {
        headers: { cookie, origin: server },
      } as never) as NonNullable<typeof socket>
      socket = fresh
      let connectedMs = Infinity
      let heard: ReturnType<typeof setTimeout>
      const hear = () => {
        clearTimeout(heard)
        heard = setTimeout(() => fresh.terminate(), SILENCE_MS)
      }
      hear()
      fresh.addEventListener('open', () => {
        follower.connects++
        connectedMs = Date.now() + 1_000
      })
      fresh.addEventListener('message', ({ data }) => {
        hear()
        if (socket === fresh) take(JSON.parse(String(data)), connectedMs)
      })
      fresh.addEventListener('close', ({ code }) => {
        clearTimeout(heard)
        if (code === 1008) note('was signed out')
        if (socket === fresh) socket = undefined
        resolve()
      })
    })
  }

  const running = (async () => {
    while (!isStopped) {
      const url = random.pick(servers())
      await connect(url)
      await sleep(20 + random.below(200))
    }
  })()
  return follower
}

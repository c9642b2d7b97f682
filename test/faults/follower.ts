import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'

/** A client of the feed that writes down all that it sees, and comes back with its cursor whenever it is cut off. */
export interface Follower {
  name: string
  projectId: string
  /** The only channel that it wants, if it does not want all. */
  channelName: string | undefined
  /** From where on it must have seen everything; undefined until a server has said so. */
  from: number | undefined
  /** How far it has seen everything. */
  cursor: number
  /** Empty of one that is to see every event. */
  seen: { seq: number; id: string }[]
  /** From an event's createdAt to its arrival, while the client was connected before it was made. */
  delaysMs: number[]
  connects: number
  /** What may never happen. */
  problems: string[]
  /** Cuts its connection off without a word. */
  cut(): void
  stop(): Promise<void>
}

export interface FollowerOptions {
  name: string
  projectId: string
  /** The public id. */
  project: string
  cookie: string
  /** Undefined for what comes from now on. */
  after: number | undefined
  channelName?: string
  /** Nothing leaves the log, so that each event must be the next one: what was seen is not kept. */
  isDense?: boolean
  /** The servers of the moment. */
  servers(): readonly string[]
  random: Random
}

// As a browser's page does that hears no heartbeat.
const SILENCE_MS = 32_000

export function startFollower(options: FollowerOptions): Follower {
  const { name, projectId, project, cookie, channelName, isDense, servers, random } = options
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
        epoch ??= message.epoch
        if (epoch !== message.epoch) note(`the epoch became ${message.epoch}`)
        break
      case 'subscribed':
        if (!message.recovered) note('it was not recovered')
        if (follower.from === undefined) follower.cursor = follower.from = message.head
        if (message.head < follower.cursor) note(`head ${message.head} is behind its cursor`)
        break
      case 'event': {
        const { seq, event } = message
        const { cursor } = follower
        if (seq <= cursor || (isDense && seq > cursor + 1)) note(`saw ${seq} after ${cursor}`)
        follower.cursor = seq
        if (!isDense) follower.seen.push({ seq, id: event.id })
        const createdMs = Date.parse(event.createdAt)
        if (createdMs > connectedMs) follower.delaysMs.push(Date.now() - createdMs)
        break
      }
      case 'heartbeat':
        // All up to the head has been sent: with a filter this is how the cursor moves on.
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

  /** Resolves when the connection has ended, for whatever reason. */
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
        const after = follower.from === undefined ? null : follower.cursor
        const filters = channelName === undefined ? {} : { channels: [channelName] }
        fresh.send(JSON.stringify({ type: 'subscribe', project, after, epoch, filters }))
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

import type { CookiesOf } from '../../access/guard/secret.ts'
import type { Pool } from '../../database/pool.ts'
import { Fault } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import type { Site } from '../../http/site.ts'
import type { FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import { registerGauge } from '../../base/metrics.ts'
import type { Socket } from '../../base/listener.ts'
import { readEpoch } from './access.ts'
import { startAccessCheck } from './access-check.ts'
import { createSocketGuard, type SocketSession } from './socket-guard.ts'
import { createHub } from './hub.ts'
import { startHintListener } from './hint-listener.ts'
import { parsePayload, type Notifier } from './notifier.ts'
import { createReplay } from './replay.ts'
import { createSockets } from './sockets.ts'
import type { Lane } from './subscribe.ts'
import { startLogTailer } from './log-tailer.ts'
import { startWatch } from './watch.ts'

const HEARTBEAT_MS = 15_000
/**
 * A deletion is undone within UNDO_GRACE_S. So at least one heartbeat of this time comes after
 * that, and finds an undo whose hint was lost.
 */
const RECENTLY_DELETED_MS = 2 * HEARTBEAT_MS

export interface FeedOptions {
  /** Reads new events and checks access. Nothing else uses it, so nothing delays it. */
  tailPool: Pool
  /** Opens sockets and subscriptions, and reads the events that clients have missed. */
  pool: Pool
  /** For sessions. No request for data uses it. */
  sessions: Pool
  /** The URL of the database itself: LISTEN does not work through a pooler. */
  listenUrl: string
  /** The port of the server. */
  port: number
  notifier: Notifier
  /** The build of the dashboard that this server serves. */
  build: string
  site: Site
  cookiesOf: CookiesOf
  failedAuthentications: FailedAuthentications
  toAddress(request: Request): string
  /** Sends a text to the sockets that have joined a topic. */
  publish(topic: string, text: string): void
  /** Called when other processes have appended events to these projects. */
  onNewEvents?(projectIds: ReadonlySet<string>): void
  /** Called when a question of a thread was answered. */
  onAnswered?(thread: { projectId: string; seq: number }): void
  listenerHeartbeatMs?: number | undefined
  listenerTimeoutMs?: number | undefined
  heartbeatMs?: number | undefined
  accessCheckMs?: number | undefined
}

export type Feed = Awaited<ReturnType<typeof startFeed>>

/**
 * Starts the live feed. The platform passes it the socket requests and messages that it receives.
 */
export async function startFeed(options: FeedOptions) {
  const { tailPool, pool, notifier } = options
  const epoch = await tailPool.run(readEpoch)
  let isDraining = false

  const isAllowed = () => access.isFresh
  const startLane = (reader: Pick<Pool, 'run'>, prefix = ''): Lane => {
    const hub = createHub(options.publish, prefix)
    const tailer = startLogTailer({
      pool: reader,
      hub,
      isListening: () => listener.isUp,
      isAllowed,
    })
    const replay = createReplay({
      pool,
      hub,
      isAllowed,
      onStalled: subscription => sockets.closeSocketOf(subscription, 'tooSlow'),
    })
    return { hub, tailer, replay }
  }
  // Only Postgres can compare names of users, and it takes longer. So the filters with such names
  // follow the logs apart from the others, which never wait for them.
  const lanes = [startLane(tailPool), startLane(pool.of('names'), 'names ')] as const
  const wake: Lane['tailer']['wake'] = projectIds =>
    lanes.forEach(one => one.tailer.wake(projectIds))
  const watch = startWatch({ pool, isListening: () => listener.isUp })
  const sockets = createSockets({
    pool,
    lanes,
    watch,
    getEpoch: () => access.epoch,
    build: options.build,
  })

  const hubs = lanes.map(({ hub }) => hub)
  const access = startAccessCheck({
    pool: tailPool,
    hubs,
    sockets,
    epoch,
    everyMs: options.accessCheckMs,
  })

  /** Publishes the recently deleted events whose restoration was not hinted. */
  function rereadDeleted(): void {
    const sinceMs = performance.now() - RECENTLY_DELETED_MS
    for (const { hub, tailer } of lanes)
      for (const { projectId, seq } of hub.listDeletedSince(sinceMs)) tailer.reread(projectId, seq)
  }

  /** Acts on hints, and returns the projects with new events. */
  function handle(hints: readonly Hint[]): ReadonlySet<string> {
    const changed = new Set<string>()
    for (const hint of hints) {
      const { kind } = hint
      if (kind === 'events') {
        changed.add(hint.projectId)
        watch.hint()
      } else if (kind === 'access') access.checkNow()
      else if (kind === 'unread') sockets.sendUnread(hint.accountId, hint.projectId)
      else if (kind === 'acknowledged' || kind === 'answered') {
        for (const hub of hubs) hub.sendAcknowledged(hint.projectId, hint.seq)
        if (kind === 'answered') options.onAnswered?.(hint)
      } else
        for (const { hub, tailer } of lanes) {
          if (kind === 'deleted') hub.removeEvent(hint.projectId, hint.seq)
          tailer.reread(hint.projectId, hint.seq)
        }
    }
    if (changed.size > 0) wake(changed)
    return changed
  }

  notifier.follow(handle)
  const listener = startHintListener({
    url: options.listenUrl,
    port: options.port,
    heartbeatMs: options.listenerHeartbeatMs,
    timeoutMs: options.listenerTimeoutMs,
    onPayload(payload) {
      const { origin, hints } = parsePayload(payload)
      if (origin === notifier.origin) return
      if (hints.includes('anyEvents')) {
        wake('all')
        watch.hint()
      }
      const changed = handle(hints.filter(hint => hint !== 'anyEvents'))
      if (changed.size > 0) options.onNewEvents?.(changed)
    },
    onListening() {
      wake('all')
      rereadDeleted()
      access.checkNow()
    },
  })
  await listener.firstAttempt

  const heartbeat = setInterval(() => {
    for (const hub of hubs) hub.sendHeartbeats()
    sockets.sendHeartbeats()
    rereadDeleted()
  }, options.heartbeatMs ?? HEARTBEAT_MS)

  registerGauges(sockets, hubs, listener, access)

  return {
    upgrade: createSocketGuard({
      ...options,
      findRefusal() {
        if (isDraining)
          return new Fault('unavailable', 'The server is stopping. Try again shortly.')
        if (sockets.hasRoom) return undefined
        return new Fault('unavailable', 'Too many sockets are open. Try again later.')
      },
    }),
    open(socket: Socket<SocketSession>): void {
      sockets.open(socket)
      if (isDraining) sockets.closeAll('stopping')
    },
    message: sockets.message,
    close: sockets.close,
    /** Milliseconds since the LISTEN connection was lost; 0 while it listens. */
    get listenerDownMs() {
      return listener.downMs
    },
    /** The number of open sockets. */
    get sockets() {
      return sockets.size
    },
    /** Replaces the LISTEN connection. */
    renew: listener.renew,
    /**
     * Closes the open sockets with 1012, evenly over `durationMs`. Then refuses new ones, and
     * closes the rest with 1001.
     */
    async drain(durationMs: number): Promise<void> {
      await sockets.drain(durationMs)
      isDraining = true
      sockets.closeAll('stopping')
    },
    async stop(): Promise<void> {
      clearInterval(heartbeat)
      await Promise.all([
        ...lanes.map(one => one.tailer.stop()),
        watch.stop(),
        access.stop(),
        listener.stop(),
      ])
    },
  }
}

function registerGauges(
  sockets: { size: number },
  hubs: readonly { subscriptions: number }[],
  listener: { isUp: boolean },
  access: { lag: number },
): void {
  registerGauge('tidings_feed_sockets', 'Open live sockets.', { read: () => sockets.size })
  registerGauge('tidings_feed_subscriptions', 'Subscriptions of live sockets to projects.', {
    read: () => hubs.reduce((sum, { subscriptions }) => sum + subscriptions, 0),
  })
  registerGauge('tidings_feed_listener_up', 'Whether LISTEN works: 1 or 0.', {
    read: () => Number(listener.isUp),
  })
  registerGauge('tidings_feed_events_behind', 'Events that are not published yet.', {
    read: () => access.lag,
  })
}

import type { Cookies } from '../accounts/secret.ts'
import type { Pool } from '../db/pool.ts'
import { Fault } from '../errors.ts'
import type { Hint } from '../hints.ts'
import type { Site } from '../http/site.ts'
import type { FailedAuthentications } from '../limits/failed-authentications.ts'
import { registerGauge } from '../metrics.ts'
import type { Socket } from '../listener.ts'
import { checkAccess, readEpoch } from './access.ts'
import { createGuard, type SocketSession } from './guard.ts'
import { createHub } from './hub.ts'
import { startHintListener } from './listener.ts'
import { toMessage } from './messages.ts'
import { parsePayload, type Notifier } from './notifier.ts'
import { logFailure } from './read.ts'
import { createReplay } from './replay.ts'
import { createSockets } from './sockets.ts'
import { startTail } from './tail.ts'
import { startWatch } from './watch.ts'

const CHECK_MS = 1_000
/** Without a successful check within this time, nothing is sent. */
const FRESH_MS = 5_000
const HEARTBEAT_MS = 15_000

export interface FeedOptions {
  /** Reads new events and checks access. Nothing else may delay it. */
  tail: Pool
  /** Opens sockets and streams, and reads the events that clients have missed. */
  pool: Pool
  /** The URL of the database itself, for LISTEN. */
  listenUrl: string
  notifier: Notifier
  site: Site
  cookies: Cookies
  failedAuthentications: FailedAuthentications
  toAddress(request: Request): string
  /** Sends a text to the sockets that have joined a topic. */
  publish(topic: string, text: string): void
  /** Called when other processes have appended events to these projects. */
  onNews?(projectIds: ReadonlySet<string>): void
  beatMs?: number | undefined
  silenceMs?: number | undefined
  heartbeatMs?: number | undefined
}

export type Feed = Awaited<ReturnType<typeof startFeed>>

/** Starts the live feed, which serves the sockets of the platform. */
export async function startFeed(options: FeedOptions) {
  const { tail: tailPool, pool, notifier } = options
  const hub = createHub(options.publish)
  let epoch = await tailPool.run(readEpoch)
  let behind = 0
  let isDraining = false

  const isAllowed = () => access.isFresh
  const tail = startTail({ pool: tailPool, hub, isListening: () => listener.isUp, isAllowed })
  const replay = createReplay({
    pool,
    hub,
    isAllowed,
    onStalled: subscription => sockets.closeOf(subscription, 'tooSlow'),
  })
  const sockets = createSockets({
    pool,
    hub,
    replay,
    getEpoch: () => epoch,
    onStream: projectId => tail.wake([projectId]),
  })

  /** Closes the sockets that are no longer allowed. */
  async function check(): Promise<void> {
    if (sockets.size === 0) return
    const { grants, revoke } = sockets.listGrants()
    const cursors = hub
      .listFollowed()
      .map(({ projectId, position }) => ({ projectId, after: position }))
    const found = await tailPool.run(sql => checkAccess(sql, grants, cursors))
    behind = found.behind
    for (const index of found.lost) revoke(index)
    if (found.epoch === epoch) return
    epoch = found.epoch
    sockets.closeAll('restored')
  }

  const access = startWatch({
    everyMs: CHECK_MS,
    freshMs: FRESH_MS,
    look: check,
    onFailure: error => logFailure('Access was not checked', error),
  })

  /** Acts on hints, and returns the projects with new events. */
  function take(hints: readonly Hint[]): ReadonlySet<string> {
    const news = new Set<string>()
    for (const hint of hints) {
      const { kind } = hint
      if (kind === 'events') news.add(hint.projectId)
      else if (kind === 'access') void access.look()
      else if (kind === 'unread') sockets.sendUnread(hint.accountId, hint.projectId)
      else
        hub.broadcast(hint.projectId, project => toMessage({ type: kind, project, seq: hint.seq }))
    }
    if (news.size > 0) tail.wake(news)
    return news
  }

  notifier.follow(take)
  const listener = startHintListener({
    url: options.listenUrl,
    beatMs: options.beatMs,
    silenceMs: options.silenceMs,
    onPayload(payload) {
      const { origin, hints } = parsePayload(payload)
      if (origin === notifier.origin) return
      if (hints.includes('everything')) tail.wake('all')
      const news = take(hints.filter(hint => hint !== 'everything'))
      if (news.size > 0) options.onNews?.(news)
    },
    onListening() {
      tail.wake('all')
      void access.look()
    },
  })
  await listener.attempted

  const heartbeat = setInterval(() => {
    hub.beat()
    sockets.beat()
  }, options.heartbeatMs ?? HEARTBEAT_MS)

  registerGauge('tidings_feed_sockets', 'Open live sockets.', { read: () => sockets.size })
  registerGauge('tidings_feed_subscriptions', 'Subscriptions of live sockets to projects.', {
    read: () => hub.subscriptions,
  })
  registerGauge('tidings_feed_listener_up', 'Whether LISTEN works: 1 or 0.', {
    read: () => Number(listener.isUp),
  })
  registerGauge('tidings_feed_events_behind', 'Events that are not published yet.', {
    read: () => behind,
  })

  return {
    upgrade: createGuard({
      ...options,
      findObstacle() {
        if (isDraining) return new Fault('unavailable', 'The server is stopping, try again shortly')
        if (sockets.hasRoom) return undefined
        return new Fault('unavailable', 'Too many sockets are open, try again later')
      },
    }),
    open(socket: Socket<SocketSession>): void {
      sockets.open(socket)
      if (isDraining) sockets.closeAll('stopping')
    },
    message: sockets.message,
    close: sockets.close,
    /** Milliseconds since hints of other processes were last received; 0 while they are. */
    get deafMs() {
      return listener.downMs
    },
    /** The number of open sockets. */
    get sockets() {
      return sockets.size
    },
    /** Replaces the LISTEN connection. */
    renew: listener.renew,
    /** Refuses new sockets, and closes the open ones with 1001. */
    drain(): void {
      isDraining = true
      sockets.closeAll('stopping')
    },
    async stop(): Promise<void> {
      clearInterval(heartbeat)
      await Promise.all([tail.stop(), access.stop(), listener.stop()])
    },
  }
}

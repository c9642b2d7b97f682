import type { Cookies } from '../accounts/cookies.ts'
import type { Pool } from '../db/pool.ts'
import { Fault } from '../errors.ts'
import type { Hint } from '../hints.ts'
import type { Site } from '../http/site.ts'
import { toId } from '../ids.ts'
import type { Strangers } from '../limits/strangers.ts'
import type { ServeOptions } from '../platform/listener.ts'
import { gauge } from '../metrics.ts'
import { readEpoch, readPulse } from './access.ts'
import { logFailure } from './failure.ts'
import { createGuard, type Visitor } from './guard.ts'
import { createHub } from './hub.ts'
import { startHintListener } from './listener.ts'
import { toGone } from './messages.ts'
import type { Notifier } from './notifier.ts'
import { parsePayload } from './payload.ts'
import { createReplay } from './replay.ts'
import { startTail } from './tail.ts'
import { createVisits } from './visits.ts'
import { startWatch } from './watch.ts'

const LOOK_MS = 1_000
/** Nothing is sent when nobody could look for so long whether it still may be. */
const FRESH_MS = 5_000
const HEARTBEAT_MS = 15_000

export interface FeedOptions {
  /** Reads on in the logs, and looks who may still follow them: neither waits for the other, nor for anything else. */
  tail: Pool
  /** For opening sockets and streams, and for what clients have missed. */
  pool: Pool
  /** Of the database itself, for LISTEN. */
  listenUrl: string
  notifier: Notifier
  getSite(): Site
  getCookies(): Cookies
  strangers: Strangers
  toAddress(request: Request): string
  /** Sends a text to the sockets that have joined a topic. */
  publish(topic: string, text: string): void
  /** Told that other processes have appended to the logs of these projects. */
  onNews?(projectIds: ReadonlySet<string>): void
  beatMs?: number | undefined
  silenceMs?: number | undefined
  heartbeatMs?: number | undefined
}

/** The live feed: what the platform calls for its sockets. */
export interface Feed extends Pick<ServeOptions<Visitor>, 'open' | 'message' | 'close'> {
  upgrade(request: Request): Promise<Visitor | Response>
  /** How long hints of other processes have not been heard, in milliseconds; 0 while they are. */
  readonly deafMs: number
  /** How many sockets are open. */
  readonly sockets: number
  /** Listens on another connection: those of others were found dead. */
  renew(): void
  /** Takes no new sockets, and closes the open ones with 1001. */
  drain(): void
  stop(): Promise<void>
}

export async function startFeed(options: FeedOptions): Promise<Feed> {
  const { tail: tailPool, pool, notifier } = options
  const hub = createHub(options.publish)
  let epoch = await tailPool.run(readEpoch)
  let behind = 0
  let isDraining = false

  const isAllowed = () => access.isFresh
  const tail = startTail({
    pool: tailPool,
    hub,
    isListening: () => listener.isUp,
    isAllowed,
  })
  const visits = createVisits({
    pool,
    hub,
    replay: createReplay({
      pool,
      hub,
      isAllowed,
      onStalled: subscription => visits.closeOf(subscription, 'tooSlow'),
    }),
    getEpoch: () => epoch,
    onStream: projectId => tail.wake([projectId]),
  })

  /** Ends what is no longer allowed. */
  async function look(): Promise<void> {
    if (visits.size === 0) return
    const { grants, revoke } = visits.listGrants()
    const cursors = hub
      .listFollowed()
      .map(({ projectId, position }) => ({ projectId, after: position }))
    const pulse = await tailPool.run(sql => readPulse(sql, grants, cursors))
    behind = pulse.behind
    for (const index of pulse.lost) revoke(index)
    if (pulse.epoch === epoch) return
    epoch = pulse.epoch
    visits.closeAll('restored')
  }

  const access = startWatch({
    everyMs: LOOK_MS,
    freshMs: FRESH_MS,
    look,
    onFailure: error => logFailure('Nobody knows who may follow', error),
  })

  /** Returns the projects whose logs have gone on. */
  function take(hints: readonly Hint[]): ReadonlySet<string> {
    const news = new Set<string>()
    for (const hint of hints) {
      const { kind } = hint
      if (kind === 'events') news.add(hint.projectId)
      else if (kind === 'access') void access.look()
      else if (kind === 'unread')
        visits.tellPerson(hint.personId, hint.projectId, toId('prj', hint.projectId))
      else hub.tell(hint.projectId, project => toGone(kind, project, hint.seq))
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
    visits.beat()
  }, options.heartbeatMs ?? HEARTBEAT_MS)

  gauge('tidings_feed', 'Live sockets and what they follow.', {
    sockets: () => visits.size,
    subscriptions: () => hub.subscriptions,
    'listener up': () => Number(listener.isUp),
    'events behind': () => behind,
  })

  return {
    upgrade: createGuard({
      ...options,
      findObstacle() {
        if (isDraining) return new Fault('unavailable', 'The server is stopping, try again shortly')
        if (visits.hasRoom) return undefined
        return new Fault('unavailable', 'Too many sockets are open, try again later')
      },
    }),
    open(socket) {
      visits.open(socket)
      if (isDraining) visits.closeAll('stopping')
    },
    message: visits.message,
    close: visits.close,
    get deafMs() {
      return listener.downMs
    },
    get sockets() {
      return visits.size
    },
    renew: () => listener.renew(),
    drain() {
      isDraining = true
      visits.closeAll('stopping')
    },
    async stop() {
      clearInterval(heartbeat)
      await Promise.all([tail.stop(), access.stop(), listener.stop()])
    },
  }
}

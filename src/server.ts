import { createCookies } from './accounts/cookies.ts'
import { toApiRoute } from './accounts/endpoint.ts'
import { listApiEndpoints } from './server/api.ts'
import { startClearing } from './server/clearing.ts'
import { createClosers } from './server/closers.ts'
import type { Config } from './config.ts'
import { createApp } from './app.ts'
import { openDatabase } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { createPools } from './db/pools.ts'
import { untilReachable } from './db/reachable.ts'
import { startDeliveries, type DeliveryOptions } from './server/deliveries.ts'
import { createDrain } from './server/drain.ts'
import { createAppender } from './events/append.ts'
import { healthRoutes } from './server/health.ts'
import { toClientAddress } from './http/client-address.ts'
import type { OpenRoute } from './http/open-route.ts'
import { toPathname } from './http/pathname.ts'
import { toDocument } from './http/openapi.ts'
import { toSite } from './http/site.ts'
import { createIdentifier } from './identities/identify.ts'
import { createAdmission } from './keys/admission.ts'
import { toRoute } from './keys/endpoint.ts'
import { ensureFirst, NOTHING_FIRST, type First } from './server/first.ts'
import { gaugeWork } from './server/gauges.ts'
import { createInflight } from './limits/idempotency.ts'
import { createShares } from './limits/shares.ts'
import { createStrangers } from './limits/strangers.ts'
import type { Listener, ServeOptions } from './platform/listener.ts'
import { logger } from './log.ts'
import { serveMetrics } from './server/metrics-server.ts'
import { createNotifier } from './feed/notifier.ts'
import { startFeed, type Feed } from './feed/feed.ts'
import { FEED_PATH, type Visitor } from './feed/guard.ts'
import { once } from './once.ts'
import { RUNTIME, serve } from './platform.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { within } from './within.ts'
import { listV1Endpoints } from './server/v1.ts'
import { VERSION } from './version.ts'
import { OUTBOX_QUEUE, type Queue } from './webhooks/queue.ts'

const log = logger('server')
/** Above our own limit, so that a normal client gets our envelope. */
const PLATFORM_BODY_BYTES = 8 * 1024 * 1024
const MAX_FRAME_BYTES = 4 * 1024
const MAX_BUFFERED_BYTES = 1024 * 1024
const BODY_TIMEOUT_MS = 20_000
/** How long a batch waits for a project that somebody else writes to: all projects of the process share it. */
const APPEND_LOCK_MS = 1_000
/** Less than the 25 s that we promise: the process must end, too. */
const STOP_MS = 24_000

export interface Server extends First {
  url: string
  port: number
  metricsPort: number | undefined
  /** Refuses new work, finishes what is in flight, and closes everything; bounded at 25 s. */
  stop(): Promise<void>
}

export interface ServerOptions extends DeliveryOptions {
  /** How long a request's body may take to arrive. */
  bodyTimeoutMs?: number
  /** How long the database may take to answer before its connections are replaced. */
  databaseDeadlineMs?: number
  /** The rhythm of the feed: its heartbeats, those of its connection that listens, and the longest silence of that. */
  feed?: { heartbeatMs?: number; beatMs?: number; silenceMs?: number }
  /** What keeps what webhooks have sent again, instead of the outbox. */
  queue?: Queue
  /** One of several that share the port: what is told once is told by whoever started them. */
  isWorker?: boolean
  /** Ends a start that still waits for its database. */
  signal?: AbortSignal
}

/** Opens everything and serves. Throws with a sentence for people when it cannot. */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<Server> {
  const startedAt = new Date()
  const database = await openDatabase(config, { carriesOver: true })
  const closers = createClosers()
  closers.push(() => database.close())
  try {
    await untilReachable(database.url, options.signal)
    await migrate(database.url)

    let feed: Feed | undefined
    // Pools are apart because postgres.js sends statements to busy connections: a slow read would hold up the rest.
    const pools = createPools(database.url, {
      deadlineMs: options.databaseDeadlineMs,
      onSilence: () => feed?.renew(),
    })
    const admissions = pools.open('admission', 1)
    const appends = pools.open('append', 1, { settings: { lock_timeout: APPEND_LOCK_MS } })
    const reads = pools.open('api', 8)
    closers.push(() => pools.end())
    const notices = pools.open('notify', 1, { settings: { synchronous_commit: 'off' } })
    const notifier = createNotifier({ pool: notices })
    closers.push(() => notifier.stop())
    let site = config.baseUrl === undefined ? undefined : toSite(config.baseUrl)
    const findSite = () => site
    const deliveries = await startDeliveries({ config, database, pools, findSite }, options)
    const { outbox } = deliveries
    closers.push(() => deliveries.stop())
    const inflight = createInflight()
    const admission = createAdmission({ pool: admissions, background: reads })
    const appender = createAppender({
      pool: appends,
      inflight,
      onAppended(projectIds) {
        // People first: the feed is a matter of milliseconds.
        notifier.tell([...projectIds].map(projectId => ({ kind: 'events', projectId })))
        outbox.wake(projectIds)
      },
    })
    const identifier = createIdentifier({ pool: appends, inflight })
    const clearing = startClearing(reads)
    closers.push(async () => {
      await Promise.all([appender.drain(), identifier.drain(), admission.stop(), clearing.stop()])
    })

    const drain = createDrain()
    const peers = new WeakMap<Request, () => string>()
    const shared = {
      strangers: createStrangers(),
      shares: createShares(),
      bodyLimits: { timeoutMs: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS },
      toAddress: (request: Request) =>
        toClientAddress(
          peers.get(request)?.() ?? '',
          request.headers.get('x-forwarded-for'),
          config.trustedProxies,
        ),
    }
    const gate = { ...shared, admission }
    const endpoints = listV1Endpoints({ appender, identifier, reads })
    // What a server that finds its own port knows once it listens: no request comes before.
    const getSite = once(() => toSite(config.baseUrl ?? `http://localhost:${listener.port}`))
    const visitors = {
      ...shared,
      getSite,
      getCookies: once(() => createCookies(getSite().isSecure)),
    }
    const apiGate = { ...visitors, pool: reads, hints: notifier }
    const routes = [
      ...endpoints.map(one => toRoute(gate, one)),
      ...listApiEndpoints({
        ...apiGate,
        ...deliveries,
        databaseKind: database.kind,
        dataDir: database.dataDir,
        deliveryStats: outbox.stats,
        isUrlSet: config.baseUrl !== undefined,
        vapidSubject: config.vapidSubject,
        startedAt,
        countSockets: () => live.sockets,
        queue: options.queue ?? OUTBOX_QUEUE,
      }).map(one => toApiRoute(apiGate, one)),
    ].map(drain.cover)
    const getDocument = once(() =>
      toDocument(
        endpoints.map(({ contract }) => contract),
        getSite().url,
      ),
    )
    const openRoutes: OpenRoute[] = [
      ...healthRoutes({ reads, appender, outbox, state: drain, getDeafMs: () => live.deafMs }),
      ...dashboardRoutes(getDocument, getSite),
    ]
    const app = createApp({ getSite, routes, openRoutes })

    const live = await startFeed({
      ...visitors,
      tail: pools.open('tail', 2, { settings: { statement_timeout: 4_000 }, deadlineMs: 5_000 }),
      pool: pools.open('feed', 4),
      listenUrl: config.databaseDirectUrl ?? database.url,
      notifier,
      publish: (topic, text) => listener.publish(topic, text),
      onNews: outbox.wake,
      ...options.feed,
    })
    feed = live
    closers.push(() => live.stop())

    const fetch = (request: Request, peer: () => string) => {
      peers.set(request, peer)
      return app.fetch(request)
    }
    const listener: Listener = serve<Visitor>({
      host: config.host,
      port: config.port,
      isShared: options.isWorker,
      maxBodyBytes: PLATFORM_BODY_BYTES,
      maxFrameBytes: MAX_FRAME_BYTES,
      maxBufferedBytes: MAX_BUFFERED_BYTES,
      fetch,
      // Where there are no sockets, a handshake gets what its path gets.
      upgrade(request, peer): ReturnType<ServeOptions<Visitor>['upgrade']> {
        if (toPathname(request.url) !== FEED_PATH) return fetch(request, peer)
        peers.set(request, peer)
        return live.upgrade(request)
      },
      open: live.open,
      message: live.message,
      close: live.close,
    })
    closers.push(() => listener.stop())
    site = getSite()

    const metrics =
      config.metricsPort === undefined ? undefined : serveMetrics(config.host, config.metricsPort)
    if (metrics) closers.push(() => metrics.stop())
    gaugeWork({ admission, appender, identifier }, { admissions, appends, reads })

    // Last, so that a start that fails does not use up the one time that the key is shown.
    const first = options.isWorker ? NOTHING_FIRST : await ensureFirst(reads.sql, config)

    log.info('Listening on {url}', {
      url: getSite().url,
      runtime: RUNTIME,
      version: VERSION,
      database: database.kind,
    })
    return {
      url: getSite().url,
      port: listener.port,
      metricsPort: metrics?.port,
      ...first,
      stop: once(async () => {
        log.info('Stopping')
        live.drain()
        // At once: what is under way has until the last request is answered, too.
        outbox.stop().catch(() => {})
        await within(STOP_MS, drain.start().then(closers.closeAll), () => {})
      }),
    }
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

import { channelRoutes } from './channels/routes.ts'
import type { Config } from './config.ts'
import { createApp } from './app.ts'
import { openDatabase } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { createPool, type Pool } from './db/pool.ts'
import { createDrain } from './drain.ts'
import { createAppender } from './events/append.ts'
import { eventRoutes } from './events/routes.ts'
import { healthRoutes } from './health.ts'
import { toClientAddress } from './http/client-address.ts'
import type { OpenRoute } from './http/open-route.ts'
import { toDocument } from './http/openapi.ts'
import { createIdentifier } from './identities/identify.ts'
import { identityRoutes } from './identities/routes.ts'
import { createAdmission } from './keys/admission.ts'
import { ensureFirstKey } from './keys/first-start.ts'
import { keyRoutes } from './keys/routes.ts'
import { createInflight } from './limits/idempotency.ts'
import { createStrangers } from './limits/strangers.ts'
import { startSweeper } from './limits/sweeper.ts'
import { toReason } from './errors.ts'
import { logger } from './log.ts'
import { collectProcessMetrics, gauge, registry } from './metrics.ts'
import { once } from './once.ts'
import { RUNTIME, serve, type Listener } from './platform.ts'
import { docsRoutes } from './dashboard/docs.ts'
import { assetRoutes } from './dashboard/assets.ts'
import { VERSION } from './version.ts'

const log = logger('server')
/** Above our own limit, so that a normal client gets our envelope. */
const PLATFORM_BODY_BYTES = 8 * 1024 * 1024
const BODY_TIMEOUT_MS = 20_000
/** How long a batch waits for a project that somebody else writes to: all projects of the process share it. */
const APPEND_LOCK_MS = 1_000
/** Less than the 25 s that we promise: the process must end, too. */
const STOP_MS = 24_000

export interface Server {
  url: string
  port: number
  metricsPort: number | undefined
  /** The token of the first key, when this start made it. */
  firstKey: string | undefined
  /** Refuses new work, finishes what is in flight, and closes everything; bounded at 25 s. */
  stop(): Promise<void>
}

export interface ServerOptions {
  /** How long a request's body may take to arrive. */
  bodyTimeoutMs?: number
  /** How long the database may take to answer before its connections are replaced. */
  databaseDeadlineMs?: number
}

/** Opens everything and serves. Throws with a sentence for people when it cannot. */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<Server> {
  const database = await openDatabase(config)
  const closers: (() => Promise<void>)[] = [() => database.close()]
  const closeAll = async () => {
    for (const close of closers.reverse()) {
      // What cannot be closed keeps nothing else open.
      await close().catch((error: unknown) => {
        log.error('Stopping goes on without one part: {reason}', { reason: toReason(error) })
      })
    }
  }
  try {
    await migrate(database.url)

    // Pools are apart because postgres.js sends statements to busy connections: a slow read would hold up the rest.
    const pools: Pool[] = []
    const open = (name: string, max: number, settings: Record<string, number> = {}) => {
      const pool = createPool(database.url, {
        name,
        max,
        settings,
        deadlineMs: options.databaseDeadlineMs,
        onSilence: () => pools.filter(other => other !== pool).forEach(other => other.renew()),
      })
      pools.push(pool)
      return pool
    }
    const admissions = open('admission', 1)
    const appends = open('append', 1, { lock_timeout: APPEND_LOCK_MS })
    const reads = open('api', 8)
    closers.push(async () => {
      await Promise.all(pools.map(pool => pool.end()))
    })
    const inflight = createInflight()
    const admission = createAdmission({ pool: admissions, background: reads })
    const appender = createAppender({ pool: appends, inflight })
    const identifier = createIdentifier({ pool: appends, inflight })
    const sweeper = startSweeper(reads)
    closers.push(async () => {
      await Promise.all([appender.drain(), identifier.drain(), admission.stop(), sweeper.stop()])
    })

    const drain = createDrain()
    const peers = new WeakMap<Request, () => string>()
    const gate = {
      admission,
      strangers: createStrangers(),
      bodyLimits: { timeoutMs: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS },
      toAddress: (request: Request) =>
        toClientAddress(
          peers.get(request)?.() ?? '',
          request.headers.get('x-forwarded-for'),
          config.trustedProxies,
        ),
    }
    const endpoints = [
      ...keyRoutes({ reads }),
      ...channelRoutes({ reads }),
      ...identityRoutes({ identifier, reads }),
      ...eventRoutes({ appender, reads }),
    ].map(drain.cover)
    let baseUrl = config.baseUrl ?? ''
    const getDocument = once(() =>
      toDocument(
        endpoints.map(({ contract }) => contract),
        baseUrl,
      ),
    )
    const openRoutes: OpenRoute[] = [
      ...healthRoutes({ reads, appender, state: drain }),
      ...docsRoutes(getDocument),
      ...assetRoutes(),
    ]
    const app = createApp({ gate, endpoints, openRoutes })

    const listener = listen(config.host, config.port, (request, peer) => {
      peers.set(request, peer)
      return app.fetch(request)
    })
    closers.push(() => listener.stop())
    baseUrl ||= `http://localhost:${listener.port}`

    const metrics =
      config.metricsPort === undefined ? undefined : serveMetrics(config.host, config.metricsPort)
    if (metrics) closers.push(() => metrics.stop())
    gauge('tidings_waiting', 'Requests that wait for the next batch.', {
      admission: () => admission.waiting,
      append: () => appender.waiting,
      identify: () => identifier.waiting,
      api: () => reads.waiting,
    })
    gauge('tidings_database_running', 'Work under way in a pool of connections.', {
      admission: () => admissions.running,
      append: () => appends.running,
      api: () => reads.running,
    })

    // Last, so that a start that fails does not use up the one time that the key is shown.
    const firstKey = await ensureFirstKey(reads.sql)

    log.info('Listening on {url}', {
      url: baseUrl,
      runtime: RUNTIME,
      version: VERSION,
      database: database.kind,
    })
    return {
      url: baseUrl,
      port: listener.port,
      metricsPort: metrics?.port,
      firstKey,
      stop: once(async () => {
        log.info('Stopping')
        await within(STOP_MS, drain.start().then(closeAll))
      }),
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

function listen(
  host: string,
  port: number,
  fetch: (request: Request, peer: () => string) => Response | Promise<Response>,
): Listener {
  return serve<never>({
    host,
    port,
    maxBodyBytes: PLATFORM_BODY_BYTES,
    maxFrameBytes: 4 * 1024,
    maxBufferedBytes: 1024 * 1024,
    fetch,
    // The live feed is not there yet: a handshake gets what its path gets.
    upgrade: (request, peer) => fetch(request, peer),
    open() {},
    message() {},
    close() {},
  })
}

/** `GET /metrics` on a port of its own, which need not be open to the world. */
function serveMetrics(host: string, port: number): Listener {
  collectProcessMetrics()
  return listen(host, port, async request => {
    if (new URL(request.url).pathname !== '/metrics')
      return new Response('Not found', { status: 404 })
    return new Response(await registry.metrics(), {
      headers: { 'Content-Type': registry.contentType },
    })
  })
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([work, late.promise])
  clearTimeout(timer)
}

import { createCookies } from '../access/guard/secret.ts'
import { startMaintenance } from './sweeps.ts'
import { startScheduledBackups } from './scheduled-backups.ts'
import { IncompleteStop, startOrClose, type CleanupStack } from './cleanup-stack.ts'
import { openCurrentDatabase } from './current-database.ts'
import type { Config } from '../base/config.ts'
import type { Database } from '../database/embedded/database.ts'
import { startFailOverCheck } from '../database/fail-over-check.ts'
import type { Pool } from '../database/pool.ts'
import { primaryOf } from '../database/primary.ts'
import { startDeliveries, type DeliveryOptions } from './deliveries.ts'
import { pingRoutes } from '../delivery/heartbeats/ping-routes.ts'
import { createAnswerWaits, type AnswerWaits } from '../delivery/questions/answer-waits.ts'
import type { Outbox } from '../delivery/outbox/outbox.ts'
import { createServerApp } from './app.ts'
import { listApiFeatures, listOpenidFeatures, listV1Features } from './features.ts'
import { bindPort, type BoundPort } from './bound-port.ts'
import { openPools, type OpenPools } from './pools.ts'
import { startWriters, type WriterOptions } from './writers.ts'
import type { Drain } from './drain.ts'
import { healthRoutes } from './health.ts'
import { registerDiskGauges, registerInstallationGauges } from './gauges.ts'
import type { Refusals } from '../access/audit/refusals.ts'
import { createProviderClients } from '../access/openid/provider-client.ts'
import {
  bootstrap,
  isBootstrapped,
  NO_BOOTSTRAP_SECRETS,
  type BootstrapOptions,
  type BootstrapSecrets,
} from './bootstrap.ts'
import { createFailedAuthentications } from '../http/limits/failed-authentications.ts'
import { logger } from '../base/log.ts'
import { createSemaphore } from '../base/semaphore.ts'
import { createRequestMemory } from '../http/request-memory.ts'
import { startMetrics } from './metrics-server.ts'
import { BUILD } from '../dashboard/assets.ts'
import { createNotifier } from '../log/feed/notifier.ts'
import { startFeed, type Feed } from '../log/feed/feed.ts'
import { once, withTimeout } from '../base/functions.ts'
import { toHostPort } from '../base/listener.ts'
import { RUNTIME } from '../base/platform.ts'
import { SOURCE_URL, VERSION } from '../base/version.ts'

const log = logger('server')
const BODY_TIMEOUT_MS = 20_000
/** The concurrent requests of one account, and the concurrent reads of one project. */
const READS_PER_CALLER = { perKey: 4 }
/** Shorter than the documented 25 s, which include the end of the process. */
const STOP_MS = 24_000
/** The part of that time which requests in flight get. Everything else is closed after them. */
const REQUESTS_SHARE = 0.9

export interface Server extends BootstrapSecrets {
  url: string
  port: number
  metricsPort: number | undefined
  /**
   * Serves for DRAIN_SECONDS while `/readyz` is 503. Then refuses new requests, finishes those in
   * flight, and closes everything, within 25 s. Logs what was not finished by then, and resolves to
   * false.
   */
  stop(): Promise<boolean>
}

export interface ServerOptions extends DeliveryOptions, WriterOptions, BootstrapOptions {
  /** The time-out for reading a request body. */
  bodyTimeoutMs?: number
  /** How long a write waits for the lock of its project. */
  lockWaitMs?: number
  /** How long the database may take to reply before its connections are replaced. */
  databaseDeadlineMs?: number
  /**
   * The intervals of checks of access, of heartbeats to sockets and of the LISTEN connection, and
   * the latter's time-out.
   */
  feed?: {
    build?: string
    accessCheckMs?: number
    heartbeatMs?: number
    listenerHeartbeatMs?: number
    listenerTimeoutMs?: number
  }
  /** How long a stop may take. */
  stopMs?: number
  /** How long a token with an unknown key waits until a provider's keys are fetched again. */
  keyCooldownMs?: number
  /** True for one of several processes that share the port. The parent prints the first secrets. */
  isWorker?: boolean
  /** Aborts the start. Everything that it has opened is closed before it rejects. */
  signal?: AbortSignal
}

/** Opens the database and the port, and serves. Throws an error that says what to do on failure. */
export function startServer(config: Config, options: ServerOptions = {}): Promise<Server> {
  return startOrClose(options.signal, cleanup => open(config, options, cleanup))
}

async function open(
  config: Config,
  options: ServerOptions,
  cleanup: CleanupStack,
): Promise<Server> {
  const startedAt = new Date()
  const database = await openCurrentDatabase(config, cleanup, options)
  const port = bindPort(config, options.isWorker)
  const { site, drain, listener } = port
  cleanup.push('the port', () => listener.stop())

  let feed: Feed | undefined
  const { pools, ...pool } = await openPools(
    database.url,
    { ...options, onReconnect: () => feed?.renew() },
    cleanup,
  )
  const notifier = createNotifier({ pool: pool.notifications })
  cleanup.push('the notifier', () => notifier.stop())
  const endFailOverCheck = startFailOverCheck({
    pool: pool.check,
    primary: primaryOf(database.url),
    leave: pools.leave,
  })
  cleanup.push('the check for a fail-over', endFailOverCheck)
  const deliveries = await startDeliveries(
    { config, database, pools, site, hints: notifier },
    options,
  )
  const { outbox } = deliveries
  cleanup.push('deliveries in flight', () => deliveries.stop())
  const endBackground = startBackground(config, database, {
    pool: pool.background,
    onFailure: pools.noteDamage,
  })
  cleanup.push('background work', endBackground)
  const writers = await startWriters(
    {
      config,
      pool,
      dataDir: database.dataDir,
      secrets: deliveries.secrets,
      onAppended: deliveries.onAppended,
    },
    options,
    cleanup,
  )

  const answerWaits = createAnswerWaits()
  const gate = createGate({ port, pool, refusals: writers.refusals }, options)
  const startedFeed = await startFeed({
    ...gate,
    tailPool: pool.tail,
    pool: pool.feed,
    listenUrl: config.databaseDirectUrl ?? database.url,
    port: listener.port,
    notifier,
    publish: (topic, text) => listener.publish(topic, text),
    onNewEvents: outbox.wake,
    onAnswered: answerWaits.wake,
    build: BUILD,
    ...options.feed,
  })
  feed = startedFeed
  cleanup.push('the feed', () => startedFeed.stop())

  const openid = {
    providers: config.providers,
    secrets: deliveries.secrets,
    clients: createProviderClients({
      egress: deliveries.egress,
      keyCooldownMs: options.keyCooldownMs,
    }),
    hasProxyHeader: config.authProxyHeader !== undefined,
    findProxyEmail: port.findProxyEmail,
  }

  const app = createServerApp({
    site,
    securityContacts: config.securityContacts,
    sourceUrl: config.sourceUrl ?? SOURCE_URL,
    health: healthRoutes({
      pool: pool.sessions.of('readiness'),
      outbox,
      state: drain,
      isDamaged: () => pools.isDamaged,
      isBootstrapped: sql => isBootstrapped(sql, config),
      getListenerDownMs: () => startedFeed.listenerDownMs,
    }),
    pings: pingRoutes({ ...gate, pool: pool.reads, onAppended: deliveries.onAppended }),
    openid: listOpenidFeatures({ ...gate, ...openid, pool: pool.reads, hints: notifier }),
    api: listApiFeatures({
      ...gate,
      ...openid,
      ...deliveries,
      pool: pool.reads,
      ...writers,
      searches: pool.searches,
      hints: notifier,
      quotaLimits: config.quotas,
      databaseKind: database.kind,
      dataDir: database.dataDir,
      isUrlSet: config.baseUrl !== undefined,
      vapidSubject: config.vapidSubject,
      startedAt,
      countSockets: () => startedFeed.sockets,
    }),
    v1: listV1Features({
      ...gate,
      ...writers,
      egress: deliveries.egress,
      secrets: deliveries.secrets,
      searches: pool.searches,
      lists: pool.reads,
      hints: notifier,
      answerWaits,
    }),
  })
  port.attach({ fetch: app.fetch, feed: startedFeed })

  const metrics = startMetrics(config)
  if (metrics) {
    cleanup.push('the metrics', () => metrics.stop())
    registerInstallationGauges(pool.openMetrics())
    if (database.kind === 'embedded') registerDiskGauges(database.dataDir)
  }

  // Last, because the key is shown only once, and a failed start must not use that up.
  const secrets = options.isWorker
    ? NO_BOOTSTRAP_SECRETS
    : await bootstrap(pool.background.sql, config, options)

  log.info('Listening on {address}. Links begin with {url}', {
    address: toHostPort({ host: config.host, port: listener.port }),
    url: site.url,
    runtime: RUNTIME,
    version: VERSION,
    database: database.kind,
  })
  return {
    url: site.url,
    port: listener.port,
    metricsPort: metrics?.port,
    ...secrets,
    stop: once(() =>
      stopServer(
        { drain, feed: startedFeed, outbox, answerWaits, cleanup },
        { drainMs: config.drainSeconds * 1000, stopMs: options.stopMs ?? STOP_MS },
      ),
    ),
  }
}

/** Starts the maintenance and the scheduled backups. Returns a function that stops both. */
function startBackground(
  config: Config,
  database: Database,
  { pool, onFailure }: { pool: Pool; onFailure(error: unknown): void },
): () => Promise<void> {
  const maintenance = startMaintenance(pool, { needsExport: config.retentionNeedsExport })
  const backups =
    config.backupSchedule &&
    startScheduledBackups({
      url: database.sessionUrl,
      pool,
      source: { ...config, dataDir: database.dataDir },
      schedule: config.backupSchedule,
      onFailure,
    })
  return async () => void (await Promise.all([maintenance.stop(), backups?.stop()]))
}

/** Creates what the guards of all routes share. */
function createGate(
  { port, pool, refusals }: { port: BoundPort; pool: OpenPools; refusals: Refusals },
  options: ServerOptions,
) {
  const { site, toAddress } = port
  return {
    site,
    sessions: pool.sessions,
    strangers: pool.strangers,
    cookiesOf: createCookies(site.isSecure),
    failedAuthentications: createFailedAuthentications(),
    refusals,
    concurrency: createSemaphore(READS_PER_CALLER),
    inputLimits: {
      timeoutMs: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS,
      memory: createRequestMemory(),
    },
    toAddress,
  }
}

/** Stops a server as `Server.stop` says. */
async function stopServer(
  {
    drain,
    feed,
    outbox,
    answerWaits,
    cleanup,
  }: {
    drain: Drain
    feed: Feed
    outbox: Outbox
    answerWaits: AnswerWaits
    cleanup: CleanupStack
  },
  { drainMs, stopMs }: { drainMs: number; stopMs: number },
): Promise<boolean> {
  log.info('Stopping')
  drain.start()
  // Load balancers see that this server is not ready, and send requests elsewhere.
  await feed.drain(drainMs)
  const deadline = performance.now() + stopMs
  // Deliveries in flight can finish while the last requests are answered.
  outbox.stop().catch(() => {})
  answerWaits.stop()
  const areAnswered = await withTimeout(
    stopMs * REQUESTS_SHARE,
    drain.refuse().then(() => true),
    () => false,
  )
  const unclosed = await cleanup.runAll(deadline - performance.now())
  const unfinished = [...(areAnswered ? [] : ['requests in flight']), ...unclosed]
  if (unfinished.length > 0) log.error(new IncompleteStop(unfinished).message)
  return unfinished.length === 0
}

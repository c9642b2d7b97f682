import { availableParallelism } from 'node:os'
import { createCookies } from '../access/guard/secret.ts'
import { startMaintenance } from './sweeps.ts'
import { startScheduledBackups } from './scheduled-backups.ts'
import { IncompleteStop, startOrClose, type CleanupStack } from './cleanup-stack.ts'
import { openCurrentDatabase } from './current-database.ts'
import { createRefusals } from '../access/audit/refusals.ts'
import type { Config } from '../base/config.ts'
import { isDistributed } from '../database/distribute.ts'
import { startFailOverCheck } from '../database/fail-over-check.ts'
import { createPools } from '../database/pool.ts'
import { primaryOf } from '../database/primary.ts'
import { startDeliveries, type DeliveryOptions } from './deliveries.ts'
import type { Outbox } from '../delivery/outbox/outbox.ts'
import { createAppender } from '../log/events/append.ts'
import { startIndexer } from '../log/events/indexer.ts'
import { INDEXER_SETTINGS } from '../log/events/search-index.ts'
import { createServerApp } from './app.ts'
import { listApiFeatures, listOpenidFeatures, listV1Features } from './features.ts'
import { bindPort } from './bound-port.ts'
import type { Drain } from './drain.ts'
import { healthRoutes } from './health.ts'
import { toErasedFile } from '../log/identities/erased-file.ts'
import { ensureErasureKey } from '../log/identities/erased-users.ts'
import { createEraser } from '../log/identities/erasure.ts'
import { createIdentityWriter } from '../log/identities/identify.ts'
import { startUserIndexer } from '../log/identities/user-indexer.ts'
import { createProviderClients } from '../access/openid/provider-client.ts'
import { createAdmission } from '../access/keys/admission.ts'
import {
  bootstrap,
  isBootstrapped,
  NO_BOOTSTRAP_SECRETS,
  type BootstrapOptions,
  type BootstrapSecrets,
} from './bootstrap.ts'
import { registerDiskGauges, registerWorkGauges } from './gauges.ts'
import { registerInstallationGauges } from './installation-gauges.ts'
import { createInFlightRequests } from '../http/limits/idempotency.ts'
import { createQuotas, storeChannelQuota } from '../http/limits/quotas.ts'
import { createFailedAuthentications } from '../http/limits/failed-authentications.ts'
import { logger } from '../base/log.ts'
import { tokenAdmission } from '../access/tokens/admission.ts'
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
/** An organization with much work leaves half of the processors to the others. */
const HEAVY_SHARE = { maxPerHeavyShare: Math.max(1, Math.floor(availableParallelism() / 2)) }
/** Two connections are always free for other organizations. */
const READS = { max: 6, maxPerShare: 4, ...HEAVY_SHARE }
/** A search has its budget in time. Its statements end soon after it. */
const SEARCHES = {
  max: 3,
  maxPerShare: 2,
  ...HEAVY_SHARE,
  settings: { statement_timeout: 500 },
}
/** Connections that start subscriptions and read what they have missed. */
const FEEDS = { max: 4, maxPerShare: 2, ...HEAVY_SHARE }
/** Sessions, known browsers and readiness: no request for data uses these connections. */
const SESSIONS = { max: 3, maxPerShare: 2 }
/** Clients without a session or a known browser. They delay nobody else. */
const STRANGERS = { max: 1, maxWaitingTotal: 256, isNewestFirst: true }
/** All projects of the process share a batch that waits for the lock of one. */
const LOCK_WAIT_MS = 1_000
/** A slow figure is left out of the metrics. */
const FIGURES_MS = 1_500
/** Longer than the indexer's statements, which take seconds for a part of hostile text. */
const INDEXER_DEADLINE_MS = 20_000
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

export interface ServerOptions extends DeliveryOptions, BootstrapOptions {
  /** The time-out for reading a request body. */
  bodyTimeoutMs?: number
  /** How long a request waits for the end of an erasure. */
  erasureWaitMs?: number
  /** How long a write waits for the lock of its project. */
  lockWaitMs?: number
  /** How long a request waits for another one with its Idempotency-Key. */
  keyWaitMs?: number
  /** How long the database may take to reply before its connections are replaced. */
  databaseDeadlineMs?: number
  /**
   * The intervals of heartbeats to sockets and of the LISTEN connection, and the latter's time-out.
   */
  feed?: {
    build?: string
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

/** The parts of a server that its stop ends. */
interface StoppedParts {
  drain: Drain
  feed: Feed
  outbox: Outbox
  cleanup: CleanupStack
}

/** Projects on different nodes of Citus are appended to at the same time. */
const DISTRIBUTED_APPENDS = 8

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
  // Separate pools, because postgres.js also sends statements to busy connections. A slow read
  // would delay everything behind it.
  const pools = createPools(database.url, {
    deadlineMs: options.databaseDeadlineMs,
    onReconnect: () => feed?.renew(),
  })
  const admissions = pools.open('admission', 1)
  const writes = { settings: { lock_timeout: options.lockWaitMs ?? LOCK_WAIT_MS } }
  const isSpread = await admissions.run(isDistributed)
  const appends = pools.open('append', isSpread ? DISTRIBUTED_APPENDS : 1, writes)
  const reads = pools.open('api', READS.max, READS)
  const searches = pools.open('search', SEARCHES.max, SEARCHES)
  const sessions = pools.open('session', SESSIONS.max, SESSIONS)
  const strangers = pools.open('stranger', STRANGERS.max, STRANGERS)
  const background = pools.open('maintenance', 2)
  // The third connection looks up organizations.
  const identifies = pools.open('identify', 3, writes)
  const userWork = pools.open('users', 2, writes)
  cleanup.push('the connections to the database', () => pools.end())
  const notifications = pools.open('notify', 1, { settings: { synchronous_commit: 'off' } })
  const notifier = createNotifier({ pool: notifications })
  cleanup.push('the notifier', () => notifier.stop())
  const endFailOverCheck = startFailOverCheck({
    pool: pools.open('check', 1),
    primary: primaryOf(database.url),
    leave: pools.leave,
  })
  cleanup.push('the check for a fail-over', endFailOverCheck)
  const deliveries = await startDeliveries({ config, database, pools, site }, options)
  const { outbox } = deliveries
  cleanup.push('deliveries in flight', () => deliveries.stop())
  const indexer = startIndexer({
    pool: pools.open('index', 1, { settings: INDEXER_SETTINGS, deadlineMs: INDEXER_DEADLINE_MS }),
  })
  cleanup.push('the indexer', () => indexer.stop())
  const inflight = createInFlightRequests(options.keyWaitMs)
  const admission = createAdmission({ pool: admissions, background })
  const appender = createAppender({
    pool: appends,
    inflight,
    isDistributed: isSpread,
    maxChannels: config.quotas.channels,
    onAppended(projectIds) {
      // The feed first, because it takes only milliseconds.
      notifier.send([...projectIds].map(projectId => ({ kind: 'events', projectId })))
      outbox.wake(projectIds)
      indexer.wake(projectIds)
    },
  })
  const userIndexer = startUserIndexer(userWork)
  const quotas = createQuotas({ limits: config.quotas, pool: background })
  await background.run(sql => storeChannelQuota(sql, config.quotas.channels))
  const identityWriter = createIdentityWriter({
    pool: identifies,
    inflight,
    quotas,
    onIdentified: userIndexer.wake,
  })
  const eraser = createEraser({
    pool: userWork,
    key: await userWork.run(sql => ensureErasureKey(sql, deliveries.secrets)),
    file: toErasedFile(database.dataDir),
    waitMs: options.erasureWaitMs,
  })
  const maintenance = startMaintenance(background, { needsExport: config.retentionNeedsExport })
  const refusals = createRefusals(background)
  const backups =
    config.backupSchedule &&
    startScheduledBackups({
      url: database.sessionUrl,
      pool: background,
      source: { ...config, dataDir: database.dataDir },
      schedule: config.backupSchedule,
      onFailure: pools.noteDamage,
    })
  cleanup.push('writes and background work', async () => {
    await Promise.all([
      appender.drain(),
      identityWriter.drain(),
      admission.stop(),
      quotas.stop(),
      maintenance.stop(),
      refusals.stop(),
      userIndexer.stop(),
      eraser.stop(),
      backups?.stop(),
    ])
  })

  const gate = {
    site,
    sessions,
    strangers,
    cookies: createCookies(site.isSecure),
    failedAuthentications: createFailedAuthentications(),
    refusals,
    concurrency: createSemaphore(READS_PER_CALLER),
    tokens: tokenAdmission,
    inputLimits: {
      timeoutMs: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS,
      memory: createRequestMemory(),
    },
    toAddress: port.toAddress,
  }
  const startedFeed = await startFeed({
    ...gate,
    tailPool: pools.open('tail', 2, {
      settings: { statement_timeout: 4_000 },
      deadlineMs: 5_000,
    }),
    pool: pools.open('feed', FEEDS.max, FEEDS),
    listenUrl: config.databaseDirectUrl ?? database.url,
    port: listener.port,
    notifier,
    publish: (topic, text) => listener.publish(topic, text),
    onNewEvents: outbox.wake,
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
      pool: sessions.of('readiness'),
      outbox,
      state: drain,
      isDamaged: () => pools.isDamaged,
      isBootstrapped: sql => isBootstrapped(sql, config),
      getListenerDownMs: () => startedFeed.listenerDownMs,
    }),
    openid: listOpenidFeatures({ ...gate, ...openid, pool: reads, hints: notifier }),
    api: listApiFeatures({
      ...gate,
      ...openid,
      ...deliveries,
      pool: reads,
      appender,
      identityWriter,
      eraser,
      searches,
      hints: notifier,
      quotas,
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
      admission,
      appender,
      quotas,
      identityWriter,
      eraser,
      searches,
      lists: reads,
    }),
  })
  port.attach({ fetch: app.fetch, feed: startedFeed })

  registerWorkGauges({ admission, appender, identityWriter })
  const metrics = startMetrics(config)
  if (metrics) {
    cleanup.push('the metrics', () => metrics.stop())
    registerInstallationGauges(
      pools.open('metrics', 1, { settings: { statement_timeout: FIGURES_MS } }),
    )
    if (database.kind === 'embedded') registerDiskGauges(database.dataDir)
  }

  // Last, because the key is shown only once, and a failed start must not use that up.
  const secrets = options.isWorker
    ? NO_BOOTSTRAP_SECRETS
    : await bootstrap(background.sql, config, options)

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
        { drain, feed: startedFeed, outbox, cleanup },
        { drainMs: config.drainSeconds * 1000, stopMs: options.stopMs ?? STOP_MS },
      ),
    ),
  }
}

/** Stops a server as `Server.stop` says. */
async function stopServer(
  { drain, feed, outbox, cleanup }: StoppedParts,
  { drainMs, stopMs }: { drainMs: number; stopMs: number },
): Promise<boolean> {
  log.info('Stopping')
  drain.start()
  // Load balancers see that this server is not ready, and send requests elsewhere.
  await feed.drain(drainMs)
  const deadline = performance.now() + stopMs
  // Deliveries in flight can finish while the last requests are answered.
  outbox.stop().catch(() => {})
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

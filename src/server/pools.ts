import { availableParallelism } from 'node:os'
import { isDistributed } from '../database/distribute.ts'
import { createPools } from '../database/pool.ts'
import type { CleanupStack } from './cleanup-stack.ts'
import { INDEXER_SETTINGS } from '../log/events/search-index.ts'

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
/** Projects on different nodes of Citus are appended to at the same time. */
const DISTRIBUTED_APPENDS = 8

interface Options {
  lockWaitMs?: number
  databaseDeadlineMs?: number
  onReconnect(): void
}

/**
 * Opens the pools of a server. They are separate, because postgres.js also sends statements to busy
 * connections: a slow read would delay everything behind it.
 */
export async function openPools(url: string, options: Options, cleanup: CleanupStack) {
  const { lockWaitMs = LOCK_WAIT_MS, databaseDeadlineMs: deadlineMs, onReconnect } = options
  const pools = createPools(url, { deadlineMs, onReconnect })
  cleanup.push('the connections to the database', () => pools.end())
  const writes = { settings: { lock_timeout: lockWaitMs } }
  const admissions = pools.open('admission', 1)
  const isSpread = await admissions.run(isDistributed)
  return {
    pools,
    /** True on Citus. */
    isSpread,
    admissions,
    appends: pools.open('append', isSpread ? DISTRIBUTED_APPENDS : 1, writes),
    reads: pools.open('api', READS.max, READS),
    searches: pools.open('search', SEARCHES.max, SEARCHES),
    sessions: pools.open('session', SESSIONS.max, SESSIONS),
    strangers: pools.open('stranger', STRANGERS.max, STRANGERS),
    background: pools.open('maintenance', 2),
    identifies: pools.open('identify', 1, writes),
    users: pools.open('users', 2, writes),
    notifications: pools.open('notify', 1, { settings: { synchronous_commit: 'off' } }),
    check: pools.open('check', 1),
    index: pools.open('index', 1, { settings: INDEXER_SETTINGS, deadlineMs: INDEXER_DEADLINE_MS }),
    feed: pools.open('feed', FEEDS.max, FEEDS),
    tail: pools.open('tail', 2, { settings: { statement_timeout: 4_000 }, deadlineMs: 5_000 }),
    openMetrics: () => pools.open('metrics', 1, { settings: { statement_timeout: FIGURES_MS } }),
  }
}

export type OpenPools = Omit<Awaited<ReturnType<typeof openPools>>, 'pools'>

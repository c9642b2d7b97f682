import type { Pool } from '../../database/pool.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { lostLeases, registerGauge } from '../../base/metrics.ts'
import { once } from '../../base/functions.ts'
import { startDispatcher } from './dispatcher.ts'
import { checkLeases, isDispatching, type DeliveryKind, type KindName } from './delivery-kind.ts'
import { forgetTargets } from './targets.ts'
import { startDeliveryWorker } from './worker.ts'

const GRACE_MS = 10_000
const COUNT_MS = 10_000
/** The count of pending deliveries stops here. */
const MAX_COUNTED = 100_000

const log = logger('outbox')

/** Turns the logs of projects into deliveries and sends them, for all kinds. */
export interface Outbox {
  readonly kinds: readonly DeliveryKind[]
  /** Announces that these projects have new events, written by this process or another. */
  wake(projectIds: Iterable<string>): void
  /**
   * Announces that `enqueueDeliveries` or a replay has written deliveries. Call it after the
   * commit.
   */
  wakeWorkers(): void
  /** How long the oldest due delivery of any kind has been overdue, in ms. */
  readonly oldestMs: number
  /** How long the oldest event of the last dispatch had waited, in ms; 0 when no event waits. */
  readonly lagMs: number
  /** The number of running attempts. */
  readonly running: number
  /** Stops claiming, waits up to 10 s for running attempts, and releases the other deliveries. */
  stop(): Promise<void>
}

export interface OutboxOptions {
  pool: Pool
  kinds: readonly DeliveryKind[]
  /** How long `stop` waits for running attempts. */
  graceMs?: number
}

/**
 * Starts the dispatcher, and a worker for each kind. Throws if the lease of a kind is too short.
 */
export async function startOutbox({
  pool,
  kinds,
  graceMs = GRACE_MS,
}: OutboxOptions): Promise<Outbox> {
  checkLeases(kinds)
  // A counter that begins at 1 has no increase.
  for (const { name } of kinds) lostLeases.inc({ kind: name }, 0)
  const workers = new Map(kinds.map(kind => [kind.name, startDeliveryWorker({ pool, kind })]))
  const all = [...workers.values()]
  const onDispatched = (kind: KindName) => workers.get(kind)?.wake()
  const reserve = (kind: KindName) => workers.get(kind)?.reserve()
  const dispatcher = startDispatcher({
    ...{ pool, onDispatched, reserve },
    kinds: kinds.filter(isDispatching),
  })
  const depth = startCounting(pool, kinds)

  const ofEach = (read: (worker: (typeof all)[number]) => number) =>
    Object.fromEntries([...workers].map(([kind, worker]) => [kind, read(worker)]))
  registerGauge(
    'tidings_outbox_pending_deliveries',
    'Pending deliveries, counted up to 100,000. The same on every server.',
    { label: 'kind', readEach: depth.read },
  )
  registerGauge('tidings_outbox_overdue_seconds', 'How long the oldest due delivery is overdue.', {
    label: 'kind',
    readEach: () => ofEach(worker => worker.oldestMs / 1000),
  })
  registerGauge('tidings_delivery_attempts_in_progress', 'Attempts in progress.', {
    label: 'kind',
    readEach: () => ofEach(worker => worker.running),
  })
  registerGauge(
    'tidings_dispatch_lag_seconds',
    'How long the latest events waited to be dispatched.',
    { read: () => dispatcher.lagMs / 1000 },
  )

  return {
    kinds,
    wake: dispatcher.wake,
    wakeWorkers: () => all.forEach(worker => worker.wake()),
    get oldestMs() {
      return Math.max(0, ...all.map(({ oldestMs }) => oldestMs))
    },
    get lagMs() {
      return dispatcher.lagMs
    },
    get running() {
      return all.reduce((sum, { running }) => sum + running, 0)
    },
    stop: once(async () => {
      void depth.stop()
      await Promise.all([dispatcher.stop(), ...all.map(worker => worker.stop(graceMs))])
    }),
  }
}

/**
 * Counts pending deliveries every 10 seconds, so that no query runs while metrics are scraped. It
 * also sweeps targets.
 */
function startCounting(pool: Pool, kinds: readonly DeliveryKind[]) {
  const counts = new Map<KindName, number>()
  async function count(): Promise<void> {
    for (const { name, sweepTargets } of kinds) {
      const [row] = await pool.run(
        sql => sql<[{ n: number }]>`
          select count(*)::int as n
          from (select from outbox where kind = ${name} limit ${MAX_COUNTED}) as pending
        `,
      )
      counts.set(name, row.n)
      await pool.run(async sql => sweepTargets?.(sql, row.n >= MAX_COUNTED))
    }
    await pool.run(forgetTargets)
  }
  const { stop } = startLoop({
    everyMs: COUNT_MS,
    round: count,
    onFailure: reason =>
      log.debug('Pending deliveries and targets could not be read: {reason}', { reason }),
  })
  return {
    read: () => Object.fromEntries(kinds.map(({ name }) => [name, counts.get(name) ?? 0])),
    stop,
  }
}

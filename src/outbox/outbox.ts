import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { gauge } from '../metrics.ts'
import { once } from '../once.ts'
import { ensureKind } from './cursors.ts'
import { startDispatcher } from './dispatcher.ts'
import { checkKinds, type DeliveryKind, type KindName } from './kind.ts'
import { startWorker, type Worker } from './worker.ts'

const GRACE_MS = 10_000
const COUNT_MS = 10_000
/** More is not counted. */
const MAX_COUNTED = 100_000

const log = logger('outbox')

/** The settings of the pools that deliver: no plan that was made on an empty table, and none that reads all of one. */
export const WORKER_SETTINGS = {
  plan_cache_mode: 'force_custom_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  jit: 'off',
}

/** The way from the logs of projects to deliveries, for all kinds. */
export interface Outbox {
  readonly kinds: readonly DeliveryKind[]
  /** Says that these projects have new events: from the process that wrote them, or because it was told of others'. */
  wake(projectIds: Iterable<string>): void
  /** Says that deliveries were written past the dispatcher, by `enqueue` or a replay. Call it after the commit. */
  wakeWorkers(): void
  readonly stats: Readonly<OutboxStats>
  /** Claims nothing more, waits up to 10 s for the attempts under way, and hands back the rest. */
  stop(): Promise<void>
}

export interface OutboxStats {
  /** How long the oldest delivery that is due has been waiting, of any kind. */
  oldestMs: number
  /** How long the oldest event of the last dispatch had waited for it; 0 when nothing waits. */
  lagMs: number
  running: number
}

export interface OutboxOptions {
  pool: Pool
  kinds: readonly DeliveryKind[]
  /** How long a stop waits for attempts under way. */
  graceMs?: number
}

/** Starts what dispatches events and makes deliveries. Without kinds it does nothing. Throws when a kind is impossible. */
export async function startOutbox({
  pool,
  kinds,
  graceMs = GRACE_MS,
}: OutboxOptions): Promise<Outbox> {
  checkKinds(kinds)
  for (const { name } of kinds) await pool.run(sql => ensureKind(sql, name))
  if (kinds.length === 0) return NOTHING

  const workers = new Map<KindName, Worker>(
    kinds.map(kind => [kind.name, startWorker({ pool, kind })]),
  )
  const all = [...workers.values()]
  const onDispatched = (kind: KindName) => workers.get(kind)?.wake()
  const dispatcher = startDispatcher({ pool, kinds, onDispatched })
  const depth = startCounting(pool, kinds)

  const of = <Value>(read: (worker: Worker) => Value) =>
    Object.fromEntries([...workers].map(([kind, worker]) => [kind, () => read(worker)]))
  gauge('tidings_outbox_deliveries', 'Deliveries that are pending, up to 100,000.', depth.read)
  gauge(
    'tidings_outbox_oldest_seconds',
    'How long the oldest delivery that is due has been waiting.',
    of(worker => worker.oldestMs / 1000),
  )
  gauge(
    'tidings_outbox_running',
    'Attempts under way.',
    of(worker => worker.running),
  )
  gauge('tidings_dispatch_lag_seconds', 'How long the last events waited to be dispatched.', {
    events: () => dispatcher.lagMs / 1000,
  })

  return {
    kinds,
    wake: dispatcher.wake,
    wakeWorkers: () => all.forEach(worker => worker.wake()),
    stats: {
      get oldestMs() {
        return Math.max(...all.map(({ oldestMs }) => oldestMs))
      },
      get lagMs() {
        return dispatcher.lagMs
      },
      get running() {
        return all.reduce((sum, { running }) => sum + running, 0)
      },
    },
    stop: once(async () => {
      depth.stop()
      await Promise.all([dispatcher.stop(), ...all.map(worker => worker.stop(graceMs))])
    }),
  }
}

const NOTHING: Outbox = {
  kinds: [],
  wake() {},
  wakeWorkers() {},
  stats: { oldestMs: 0, lagMs: 0, running: 0 },
  async stop() {},
}

/** Counts what is pending now and then: whoever scrapes the metrics must not wait for it, and no target has too much. */
function startCounting(pool: Pool, kinds: readonly DeliveryKind[]) {
  const counts = new Map<KindName, number>()
  async function count(): Promise<void> {
    for (const { name, markBacklogs } of kinds) {
      const [row] = await pool.run(
        sql => sql<[{ n: number }]>`
          select count(*)::int as n
          from (select from outbox where kind = ${name} limit ${MAX_COUNTED}) as pending
        `,
      )
      counts.set(name, row.n)
      await pool.run(async sql => markBacklogs?.(sql, row.n >= MAX_COUNTED))
    }
  }
  const timer = setInterval(() => {
    count().catch((error: unknown) => {
      log.debug('Deliveries were not counted: {reason}', { reason: toReason(error) })
    })
  }, COUNT_MS)
  timer.unref()
  return {
    read: Object.fromEntries(kinds.map(({ name }) => [name, () => counts.get(name) ?? 0])),
    stop: () => clearInterval(timer),
  }
}

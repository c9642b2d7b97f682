import { Fault } from '../errors.ts'
import { logger } from '../log.ts'
import { createSemaphore } from '../semaphore.ts'
import { connect, type ConnectOptions, type Sql, type Tx } from './sql.ts'

const log = logger('db')
const DEADLINE_MS = 8_000
const MAX_WAITING = 1_000

export interface Pool {
  /** The current connections. They are replaced at times, so read this anew for each use. */
  readonly sql: Sql
  /**
   * Runs `work` once a connection is free, under a deadline. The server's own time-outs end what is slow; the deadline
   * is for a server that does not answer at all: then every connection is replaced, because a dead one would swallow
   * the next statement, too. Refuses when too many wait, or for too long.
   */
  run<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
  /** Opens new connections; work in progress ends on the old ones. */
  reconnect(): void
  /** The number of calls of `run` that hold a connection. */
  readonly running: number
  /** The number of calls of `run` that wait for a connection. */
  readonly waiting: number
  end(): Promise<void>
}

export interface PoolOptions extends ConnectOptions {
  deadlineMs?: number | undefined
  /** Called when the deadline has passed: idle connections of other pools may be dead, too. */
  onUnresponsive?(): void
}

export function createPool(
  url: string,
  { deadlineMs = DEADLINE_MS, onUnresponsive, ...options }: PoolOptions,
): Pool {
  const slots = createSemaphore({ total: options.max, maxWaiting: MAX_WAITING })
  let sql = connect(url, options)

  function replace(stale: Sql): void {
    if (stale !== sql) return
    log.error('No answer from the database in {deadlineMs} ms, reconnecting', {
      pool: options.name,
      deadlineMs,
    })
    leave(0)
    onUnresponsive?.()
  }

  function leave(graceMs: number): void {
    const left = sql
    sql = connect(url, options)
    void left.end({ timeout: graceMs / 1000 }).catch(() => {})
  }

  async function runOnce<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    const used = sql
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      replace(used)
      late.reject(
        new Fault('unavailable', 'The database did not answer in time, try again shortly'),
      )
    }, deadlineMs)
    try {
      return await Promise.race([work(used), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    get sql() {
      return sql
    },
    reconnect: () => leave(deadlineMs),
    get running() {
      return slots.running
    },
    get waiting() {
      return slots.waiting
    },
    run: work => slots.run('', () => runOnce(work), { maxWaitMs: deadlineMs }),
    end: () => sql.end({ timeout: 5 }),
  }
}

interface PoolOverrides {
  /** Server settings of each connection. */
  settings?: Record<string, string | number>
  /** A shorter deadline for this pool than the common one. */
  deadlineMs?: number
}

/** The pools of one program to one database. When one finds its connections dead, the others are renewed, too. */
export interface Pools {
  open(name: string, max: number, more?: PoolOverrides): Pool
  end(): Promise<void>
}

export interface PoolsOptions {
  deadlineMs?: number | undefined
  /** Called when one of the pools has found its connections dead. */
  onUnresponsive(): void
}

export function createPools(url: string, { deadlineMs, onUnresponsive }: PoolsOptions): Pools {
  const pools: Pool[] = []
  return {
    open(name, max, { settings = {}, deadlineMs: own = Infinity } = {}) {
      const least = Math.min(own, deadlineMs ?? Infinity)
      const pool = createPool(url, {
        name,
        max,
        settings,
        deadlineMs: least === Infinity ? undefined : least,
        onUnresponsive() {
          for (const other of pools) if (other !== pool) other.reconnect()
          onUnresponsive()
        },
      })
      pools.push(pool)
      return pool
    },
    async end() {
      await Promise.all(pools.map(pool => pool.end()))
    },
  }
}

/** Runs `work` in a transaction of `pool`: all of it happens, or nothing. */
export function transact<Result>(
  pool: Pool,
  work: (tx: Tx) => Promise<Result>,
): Promise<Awaited<Result>> {
  // postgres.js also takes arrays of promises from `work`; ours returns none.
  return pool.run(sql => sql.begin(work)) as Promise<Awaited<Result>>
}

import { Fault, isDamage } from '../base/errors.ts'
import { startDeadline } from '../base/functions.ts'
import { logger } from '../base/log.ts'
import { createWaitObserver, registerGauge } from '../base/metrics.ts'
import { createSemaphore, type SemaphoreOptions } from '../base/semaphore.ts'
import { primaryOf } from './primary.ts'
import {
  connect,
  READ_ONLY,
  sqlState,
  type ConnectOptions,
  type Queryable,
  type Sql,
  type Tx,
} from './sql.ts'

const log = logger('db')
const DEADLINE_MS = 8_000
/** A database that is read-only by its settings is not left more often than this. */
const LEAVE_EVERY_MS = 1_000

export interface Pool {
  /** The current connections. Read this property for each use, because they can be replaced. */
  readonly sql: Sql
  /**
   * Runs `work` once a connection is free. Rejects with `unavailable` when the wait exceeds the
   * deadline. Postgres's own time-outs end slow statements. The deadline detects a server that does
   * not reply: each reply to a statement of `work` restarts it. Without one, `work` fails with
   * `unavailable`, and every connection is replaced.
   */
  run<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
  /**
   * Returns the part of this pool that belongs to `share`, such as an organization. Shares that
   * compete for connections get them in turn, by the time that they have used.
   */
  of(share: string): Pool
  /** Opens new connections. Work in progress finishes on the old ones. */
  reconnect(): void
  /** Opens new connections at once. Work in progress fails. */
  leave(): void
  /** How many calls of `run` hold a connection. */
  readonly running: number
  /** How many calls of `run` wait for a connection. */
  readonly waiting: number
  end(): Promise<void>
}

/** `maxWaitingTotal` and `isNewestFirst` say how callers wait; by default all of them do. */
export interface PoolOptions
  extends ConnectOptions, Pick<SemaphoreOptions, 'maxWaitingTotal' | 'isNewestFirst'> {
  deadlineMs?: number | undefined
  /** The number of connections that one share may use at a time; all of them by default. */
  maxPerShare?: number | undefined
  /** The same for a share with much recent work, while others are active. */
  maxPerHeavyShare?: number | undefined
  /**
   * Called when the server was silent for the deadline, or when a standby was asked to write.
   * Connections of other pools may be dead or out of place as well.
   */
  onUnresponsive?(): void
  /** Called with each error of `work`. */
  onError?(error: unknown): void
}

export function createPool(
  url: string,
  {
    deadlineMs = DEADLINE_MS,
    maxPerShare,
    maxPerHeavyShare,
    maxWaitingTotal = Infinity,
    isNewestFirst = false,
    onUnresponsive,
    onError,
    ...options
  }: PoolOptions,
): Pool {
  const semaphore = createSemaphore({
    total: options.max,
    perKey: maxPerShare ?? options.max,
    perHeavyKey: maxPerHeavyShare ?? maxPerShare ?? options.max,
    maxWaitingTotal,
    isNewestFirst,
  })
  const observeWait = createWaitObserver(options.name)
  let sql = connect(url, options)
  let leftMs = -Infinity

  /** Leaves a server that is a standby now. The next connections are made to the primary. */
  function onReadOnly(stale: Sql): void {
    if (stale !== sql || performance.now() - leftMs < LEAVE_EVERY_MS) return
    leftMs = performance.now()
    log.warning('The database is read-only. Reconnecting.', { pool: options.name })
    primaryOf(url)?.forget()
    replaceConnections(deadlineMs)
    onUnresponsive?.()
  }

  function onDeadline(stale: Sql): void {
    if (stale !== sql) return
    log.error('The database did not reply within {deadlineMs} ms. Reconnecting.', {
      pool: options.name,
      deadlineMs,
    })
    replaceConnections(0)
    onUnresponsive?.()
  }

  function replaceConnections(graceMs: number): void {
    const old = sql
    sql = connect(url, options)
    void old.end({ timeout: graceMs / 1000 }).catch(() => {})
  }

  async function runOnce<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    const used = sql
    const late = Promise.withResolvers<never>()
    let isOver = false
    const start = () =>
      startDeadline(deadlineMs, () => {
        onDeadline(used)
        late.reject(
          new Fault('unavailable', 'The database did not respond in time. Try again shortly.'),
        )
      })
    let endDeadline = start()
    const onReply = () => {
      if (isOver) return
      endDeadline()
      endDeadline = start()
    }
    try {
      return await Promise.race([work(withReplies(used, onReply)), late.promise])
    } catch (error) {
      if (sqlState(error) === READ_ONLY) onReadOnly(used)
      onError?.(error)
      throw error
    } finally {
      isOver = true
      endDeadline()
    }
  }

  const toPool = (share: string): Pool => ({
    get sql() {
      return sql
    },
    of: toPool,
    reconnect: () => replaceConnections(deadlineMs),
    leave: () => replaceConnections(0),
    get running() {
      return semaphore.running
    },
    get waiting() {
      return semaphore.waiting
    },
    run(work) {
      const startedMs = performance.now()
      const runNow = () => {
        observeWait(performance.now() - startedMs)
        return runOnce(work)
      }
      return semaphore.run(share, runNow, { maxWaitMs: deadlineMs })
    },
    end: () => sql.end({ timeout: 5 }),
  })
  return toPool('')
}

/**
 * Returns `sql` such that `onReply` is called when one of its statements, or one of its
 * transactions, has succeeded or failed.
 */
function withReplies<Statements extends Queryable>(
  sql: Statements,
  onReply: () => void,
): Statements {
  const listen = (statement: unknown): unknown => {
    // A fragment is a statement that nobody awaits: only `then` executes it.
    if (!(statement instanceof Promise)) return statement
    const { then } = statement
    statement.then = (...handlers) => {
      statement.then = then
      void then.call(statement, onReply, onReply)
      return then.apply(statement, handlers) as never
    }
    return statement
  }
  const isNested = (key: string | symbol) => key === 'begin' || key === 'savepoint'
  return new Proxy(sql, {
    apply: (target, self, args) => listen(Reflect.apply(target, self, args)),
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || !(isNested(key) || key === 'unsafe')) return value
      return (...args: unknown[]) =>
        listen(
          Reflect.apply(
            value,
            target,
            args.map(arg =>
              typeof arg === 'function' ? (tx: Tx) => arg(withReplies(tx, onReply)) : arg,
            ),
          ),
        )
    },
  })
}

/** The pools of one program to one database. They all reconnect when one misses its deadline. */
export interface Pools {
  open(
    name: string,
    max: number,
    more?: Omit<PoolOptions, 'name' | 'max' | 'onUnresponsive' | 'onError'>,
  ): Pool
  /**
   * Opens new connections in all pools at once, because their server is not the primary any more.
   * Work in progress fails.
   */
  leave(): void
  /** True once an error has shown that the files of Postgres are damaged. */
  readonly isDamaged: boolean
  /** Notes an error of a connection outside of the pools. */
  noteDamage(error: unknown): void
  end(): Promise<void>
}

/** Creates no pool yet. `onReconnect` is called when all pools reconnect. */
export function createPools(
  url: string,
  { deadlineMs, onReconnect }: { deadlineMs?: number | undefined; onReconnect(): void },
): Pools {
  const pools = new Map<string, Pool>()
  let isDamaged = false
  const noteDamage = (error: unknown) => {
    isDamaged ||= isDamage(error)
  }
  const ofEach = (read: (pool: Pool) => number) =>
    Object.fromEntries([...pools].map(([name, pool]) => [name, read(pool)]))
  registerGauge('tidings_database_pool_waiting', 'Work that waits for a connection of a pool.', {
    label: 'pool',
    readEach: () => ofEach(({ waiting }) => waiting),
  })
  registerGauge('tidings_database_pool_in_use', 'Connections of a pool that are in use.', {
    label: 'pool',
    readEach: () => ofEach(({ running }) => running),
  })
  return {
    open(name, max, { settings = {}, deadlineMs: own = Infinity, ...shares } = {}) {
      const least = Math.min(own, deadlineMs ?? Infinity)
      const pool = createPool(url, {
        name,
        max,
        settings,
        ...shares,
        deadlineMs: least === Infinity ? undefined : least,
        onUnresponsive() {
          for (const other of pools.values()) if (other !== pool) other.reconnect()
          onReconnect()
        },
        onError: noteDamage,
      })
      pools.set(name, pool)
      return pool
    },
    leave() {
      for (const pool of pools.values()) pool.leave()
      onReconnect()
    },
    get isDamaged() {
      return isDamaged
    },
    noteDamage,
    async end() {
      await Promise.all([...pools.values()].map(pool => pool.end()))
    },
  }
}

/** Runs `work` in a transaction of `pool`. */
export function transact<Result>(
  pool: Pool,
  work: (tx: Tx) => Promise<Result>,
): Promise<Awaited<Result>> {
  // postgres.js also accepts arrays of promises from `work`, which callers here never return.
  return pool.run(sql => sql.begin(work)) as Promise<Awaited<Result>>
}

/** The waits of `runBriefly`. They suffice for a write that waits for nothing long. */
const BRIEF_LOCK_MS = 50
const BRIEF_STATEMENT_MS = 1_000

/** Runs `work` in a transaction that soon gives up waiting for a lock, or for a slow statement. */
export function runBriefly<Result>(
  pool: Pool,
  work: (sql: Queryable) => Promise<Result>,
): Promise<Awaited<Result>> {
  return transact(pool, async tx => {
    await tx`
      select
        set_config('lock_timeout', ${String(BRIEF_LOCK_MS)}, true),
        set_config('statement_timeout', ${String(BRIEF_STATEMENT_MS)}, true)
    `
    return work(tx)
  })
}

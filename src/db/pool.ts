import { Fault } from '../errors.ts'
import { logger } from '../log.ts'
import { connect, type ConnectOptions, type Sql } from './sql.ts'

const log = logger('db')
const DEADLINE_MS = 8_000

export interface Pool {
  /** The connections of the moment: ask each time, never keep it. */
  readonly sql: Sql
  /**
   * Runs `work` under a deadline. The server's own time-outs end what is slow; the deadline is for a server that does
   * not answer at all: then every connection is replaced, because a dead one would swallow the next statement, too.
   */
  run<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
  /** Moves on to new connections; what is under way ends on the old ones. */
  renew(): void
  /** How much work is under way or waits for a connection. */
  readonly running: number
  end(): Promise<void>
}

export interface PoolOptions extends ConnectOptions {
  deadlineMs?: number | undefined
  /** Told when the deadline has passed: idle connections of other pools may be as dead. */
  onSilence?(): void
}

export function createPool(
  url: string,
  { deadlineMs = DEADLINE_MS, onSilence, ...options }: PoolOptions,
): Pool {
  let sql = connect(url, options)
  let running = 0

  function replace(stale: Sql): void {
    if (stale !== sql) return
    log.error('No answer from the database in {deadlineMs} ms, reconnecting', {
      pool: options.name,
      deadlineMs,
    })
    leave(0)
    onSilence?.()
  }

  function leave(graceMs: number): void {
    const left = sql
    sql = connect(url, options)
    void left.end({ timeout: graceMs / 1000 }).catch(() => {})
  }

  return {
    get sql() {
      return sql
    },
    renew: () => leave(deadlineMs),
    get running() {
      return running
    },
    async run(work) {
      running++
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
        running--
        clearTimeout(timer)
      }
    },
    end: () => sql.end({ timeout: 5 }),
  }
}

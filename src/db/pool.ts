import { Fault } from '../errors.ts'
import { logger } from '../log.ts'
import { connect, type ConnectOptions, type Sql } from './sql.ts'

const log = logger('db')
const DEADLINE_MS = 8_000
const MAX_WAITING = 1_000

export interface Pool {
  /** The connections of the moment: ask each time, never keep it. */
  readonly sql: Sql
  /**
   * Runs `work` once a connection is free, under a deadline. The server's own time-outs end what is slow; the deadline
   * is for a server that does not answer at all: then every connection is replaced, because a dead one would swallow
   * the next statement, too. Refuses when too many wait, or for too long.
   */
  run<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
  /** Moves on to new connections; what is under way ends on the old ones. */
  renew(): void
  /** How much work is under way. */
  readonly running: number
  /** How much work waits for a connection. */
  readonly waiting: number
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
  const turns = createTurns(options.max, deadlineMs)
  let sql = connect(url, options)

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
      return turns.taken
    },
    get waiting() {
      return turns.waiting
    },
    async run(work) {
      await turns.take()
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
        turns.giveBack()
      }
    },
    end: () => sql.end({ timeout: 5 }),
  }
}

/** At most `max` at a time, first come first served; who waits longer than `waitMs` is refused. */
function createTurns(max: number, waitMs: number) {
  const queue: (() => void)[] = []
  let taken = 0
  return {
    get taken() {
      return taken
    },
    get waiting() {
      return queue.length
    },
    take(): Promise<void> {
      if (taken < max) {
        taken++
        return Promise.resolve()
      }
      const busy = new Fault('unavailable', 'The server is overloaded, try again shortly')
      if (queue.length >= MAX_WAITING) return Promise.reject(busy)
      return new Promise((resolve, reject) => {
        const turn = () => {
          clearTimeout(timer)
          resolve()
        }
        const timer = setTimeout(() => {
          queue.splice(queue.indexOf(turn), 1)
          reject(busy)
        }, waitMs)
        queue.push(turn)
      })
    },
    giveBack(): void {
      // The next one takes the turn over.
      const next = queue.shift()
      if (next) next()
      else taken--
    },
  }
}

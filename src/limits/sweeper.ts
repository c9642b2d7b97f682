import { isClockDoubted } from '../db/clock.ts'
import type { Pool } from '../db/pool.ts'
import type { Fragment, Sql } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const EVERY_MS = 60_000
/** As many rows as one statement deletes. */
export const SWEEP_BATCH = 500

/** Deletes one batch of what has expired; returns how many rows it deleted. */
export type Sweep = (pool: Pool) => Promise<number>

/** What is over: Idempotency-Keys, and the windows of keys that have not been used for long. */
export const LIMIT_SWEEPS: readonly Sweep[] = [
  sweepOf('idempotency_keys', sql => sql`s.expires_at < now()`, { oldest: 'expires_at' }),
  sweepOf('rate_windows', sql => sql`s.started_at < now() - interval '1 hour'`),
]

/** Deletes what has expired every minute, in small batches, so that no one waits for it; while the clock is doubted, nothing. */
export function startSweeper(pool: Pool, sweeps: readonly Sweep[]): { stop(): Promise<void> } {
  const log = logger('limits')
  let running: Promise<void> = Promise.resolve()
  let isStopped = false

  async function round(): Promise<void> {
    try {
      if (await isClockDoubted(pool)) return
    } catch (error) {
      return warn(error)
    }
    for (const sweep of sweeps) {
      try {
        while (!isStopped && (await sweep(pool)) === SWEEP_BATCH);
      } catch (error) {
        warn(error)
      }
    }
  }

  const warn = (error: unknown) =>
    log.warning('Sweep failed, it is tried again: {reason}', { reason: toReason(error) })

  const timer = setInterval(() => void (running = running.then(round)), EVERY_MS)
  timer.unref()
  return {
    async stop() {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}

/** A sweep of the rows `s` of a table for which `isOver` holds; `oldest`, the column that tells, leads along its index. */
export function sweepOf(
  table: string,
  isOver: (sql: Sql) => Fragment,
  { oldest }: { oldest?: string } = {},
): Sweep {
  return async pool => {
    const deleted = await pool.run(
      sql => sql`
        delete from ${sql(table)}
        where ctid = any(array(
          select s.ctid
          from ${sql(table)} s
          where ${isOver(sql)}
          ${oldest === undefined ? sql`` : sql`order by s.${sql(oldest)}`}
          limit ${SWEEP_BATCH}
          for update skip locked
        ))
      `,
    )
    return deleted.count
  }
}

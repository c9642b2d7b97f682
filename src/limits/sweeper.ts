import { isClockDoubted } from '../db/clock.ts'
import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const EVERY_MS = 60_000
/** As many rows as one statement deletes. */
export const SWEEP_BATCH = 500

/** Deletes one batch of what has expired; returns how many rows it deleted. */
export type Sweep = (pool: Pool) => Promise<number>

/** What this folder has to sweep. */
export const LIMIT_SWEEPS: readonly Sweep[] = [sweepKeys, sweepWindows]

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

/** One batch of expired Idempotency-Keys; returns how many it deleted. */
export async function sweepKeys(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from idempotency_keys
      where (project_id, key) in (
        select project_id, key
        from idempotency_keys
        where expires_at < now()
        order by expires_at
        limit ${SWEEP_BATCH}
        for update skip locked
      )
    `,
  )
  return deleted.count
}

/** A batch of the windows of keys that have not been used for long. */
async function sweepWindows(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from rate_windows
      where key_id in (
        select key_id
        from rate_windows
        where started_at < now() - interval '1 hour'
        limit ${SWEEP_BATCH}
        for update skip locked
      )
    `,
  )
  return deleted.count
}

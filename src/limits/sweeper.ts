import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const EVERY_MS = 60_000
const BATCH = 500

/** Deletes what has expired, in small batches, so that no one waits for it. */
export function startSweeper(pool: Pool): { stop(): Promise<void> } {
  const log = logger('limits')
  let running: Promise<void> = Promise.resolve()
  let isStopped = false

  async function sweep(): Promise<void> {
    try {
      while (!isStopped && (await sweepKeys(pool)) === BATCH);
      if (!isStopped) await sweepWindows(pool)
    } catch (error) {
      log.warning('Sweep failed, it is tried again: {reason}', { reason: toReason(error) })
    }
  }

  const timer = setInterval(() => void (running = running.then(sweep)), EVERY_MS)
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
        limit ${BATCH}
        for update skip locked
      )
    `,
  )
  return deleted.count
}

/** A batch of the windows of keys that have not been used for long. */
async function sweepWindows(pool: Pool): Promise<void> {
  await pool.run(
    sql => sql`
      delete from rate_windows
      where key_id in (
        select key_id
        from rate_windows
        where started_at < now() - interval '1 hour'
        limit ${BATCH}
        for update skip locked
      )
    `,
  )
}

import { startReaper } from '../accounts/reaper.ts'
import { ACCOUNT_SWEEPS } from '../accounts/sweeper.ts'
import type { Pool } from '../db/pool.ts'
import { startRetention } from '../events/retention.ts'
import { OUTBOX_SWEEPS } from '../outbox/sweeper.ts'
import { LIMIT_SWEEPS, startSweeper } from '../limits/sweeper.ts'
import { PUSH_SWEEPS } from '../push/sweeper.ts'
import { WEBHOOK_SWEEPS } from '../webhooks/sweeper.ts'

/** Clears away what has expired, is past keeping or was deleted, until it is stopped. */
export function startClearing(pool: Pool): { stop(): Promise<void> } {
  const sweeper = startSweeper(pool, [
    ...LIMIT_SWEEPS,
    ...ACCOUNT_SWEEPS,
    ...OUTBOX_SWEEPS,
    ...PUSH_SWEEPS,
    ...WEBHOOK_SWEEPS,
  ])
  const reaper = startReaper(pool)
  const retention = startRetention(pool)
  return {
    async stop() {
      await Promise.all([sweeper.stop(), reaper.stop(), retention.stop()])
    },
  }
}

import type { Pool } from '../db/pool.ts'
import { SWEEP_BATCH, type Sweep } from '../limits/sweeper.ts'

/** What this folder has to sweep: attempts after 30 days, those of webhooks that were deleted, and then these. */
export const WEBHOOK_SWEEPS: readonly Sweep[] = [sweepAttempts, sweepOrphans, sweepWebhooks]

async function sweepAttempts(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from webhook_attempts
      where (project_id, id) in (
        select project_id, id
        from webhook_attempts
        where started_at < now() - interval '30 days'
        order by started_at
        limit ${SWEEP_BATCH}
        for update skip locked
      )
    `,
  )
  return deleted.count
}

async function sweepOrphans(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from webhook_attempts
      where (project_id, id) in (
        select a.project_id, a.id
        from webhooks w
          join webhook_attempts a on a.project_id = w.project_id and a.webhook_id = w.id
        where w.deleted_at is not null
        limit ${SWEEP_BATCH}
        for update of a skip locked
      )
    `,
  )
  return deleted.count
}

/** An attempt may have been under way when its webhook was deleted: so not at once. */
async function sweepWebhooks(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from webhooks
      where (project_id, id) in (
        select w.project_id, w.id
        from webhooks w
        where w.deleted_at < now() - interval '1 hour'
          and not exists (
            select from webhook_attempts a
            where a.project_id = w.project_id and a.webhook_id = w.id
          )
        limit ${SWEEP_BATCH}
        for update skip locked
      )
    `,
  )
  return deleted.count
}

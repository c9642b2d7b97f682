import { SWEEP_BATCH, sweepOf, type Sweep } from '../limits/sweeper.ts'

/** What is over: attempts after 30 days, those of webhooks that were deleted, and then these. */
export const WEBHOOK_SWEEPS: readonly Sweep[] = [
  sweepOf('webhook_attempts', sql => sql`s.started_at < now() - interval '30 days'`, {
    oldest: 'started_at',
  }),
  async pool => {
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
  },
  // An attempt may have been under way when its webhook was deleted: so not at once.
  sweepOf(
    'webhooks',
    sql => sql`
      s.deleted_at < now() - interval '1 hour' and not exists (
        select from webhook_attempts a where a.project_id = s.project_id and a.webhook_id = s.id
      )
    `,
  ),
]

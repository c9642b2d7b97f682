import type { Pool } from '../db/pool.ts'
import type { Fragment, Sql } from '../db/sql.ts'
import { SWEEP_BATCH, type Sweep } from '../limits/sweeper.ts'
import { isExpired } from './sessions.ts'

/** What is over, table by table: sessions, links, browsers, failures, and what is kept for a time. */
export const ACCOUNT_SWEEPS: readonly Sweep[] = [
  sweepOf('sessions', sql => isExpired(sql)),
  sweepOf('setup_links', sql => sql`s.expires_at < now()`),
  sweepOf('reset_links', sql => sql`s.expires_at < now()`),
  sweepOf('invites', sql => sql`s.expires_at < now()`),
  // Browsers keep no cookie for longer.
  sweepOf('known_devices', sql => sql`s.last_used_at < now() - interval '400 days'`),
  // What is older delays nobody and counts no more.
  sweepOf('sign_in_failures', sql => sql`s.last_at < now() - interval '1 day'`),
  sweepOf('key_usage', sql => sql`s.hour < now() - interval '90 days'`),
  sweepOf('audit_log', sql => sql`s.at < now() - interval '1 year'`),
]

/** A sweep of the rows `s` of a table for which `isOver` holds. */
function sweepOf(table: string, isOver: (sql: Sql) => Fragment): Sweep {
  return async (pool: Pool) => {
    const deleted = await pool.run(
      sql => sql`
        delete from ${sql(table)}
        where ctid = any(array(
          select s.ctid
          from ${sql(table)} s
          where ${isOver(sql)}
          limit ${SWEEP_BATCH}
          for update skip locked
        ))
      `,
    )
    return deleted.count
  }
}

import type { Queryable } from './sql.ts'

/** A standby that is connected to the primary. */
export interface Standby {
  /** Its application_name. */
  name: string
  /** True if commits wait for it, so that its promotion loses nothing that was accepted. */
  isSynchronous: boolean
  /** WAL that it has not stored yet. Its promotion would lose it. */
  lagBytes: number
  /** The time of that WAL, in seconds. */
  lagSeconds: number
}

const MAX_STANDBYS = 20

/**
 * Lists the standbys of the database. Undefined if the user of the database has no right to see
 * them: pg_monitor grants it.
 */
export async function listStandbys(sql: Queryable): Promise<Standby[] | undefined> {
  const rows = await sql<(Standby & { isHidden: boolean })[]>`
    select
      coalesce(application_name, '') as name,
      coalesce(sync_state in ('sync', 'quorum'), false) as "isSynchronous",
      greatest(0, coalesce(pg_wal_lsn_diff(w.lsn, flush_lsn), 0))::float8 as "lagBytes",
      case when flush_lsn < w.lsn
        -- The measured lag stands still when the standby does not reply.
        then greatest(0, extract(epoch from greatest(flush_lag, now() - reply_time)))
        else 0
      end::float8 as "lagSeconds",
      state is null as "isHidden"
    from pg_stat_replication
      cross join (
        select case when not pg_is_in_recovery() then pg_current_wal_flush_lsn() end as lsn
      ) w
    where state is null or state = 'streaming'
    order by name
    limit ${MAX_STANDBYS}
  `
  if (rows.some(({ isHidden }) => isHidden)) return undefined
  return rows.map(({ isHidden: _, ...standby }) => standby)
}

import { logger } from '../base/log.ts'
import { startLoop } from '../base/loop.ts'
import { registerGauge } from '../base/metrics.ts'
import type { Pool } from './pool.ts'
import type { Primary } from './primary.ts'
import { isUnavailable, sqlState, type Sql } from './sql.ts'

const log = logger('db')
const EVERY_MS = 1_000
/** The primary is searched after this time, and when a check takes longer than the next one. */
const SEARCH_EVERY_MS = 5_000
const LATE_MS = 2_000

export interface FailOverCheckOptions {
  pool: Pool
  /** The hosts of the database, if there are several. */
  primary: Primary | undefined
  /** Replaces the connections of all pools at once. */
  leave(): void
  everyMs?: number | undefined
}

interface State {
  /** The timeline on which the epoch is valid. Null on the first start. */
  stored: number | null
  /** Null on a standby, and for a Postgres that does not tell it. */
  timeline: number | null
  isStandby: boolean
}

/**
 * Checks every second on which timeline the database is. Each promotion of a standby begins one,
 * and may have lost accepted events. So another timeline begins a new epoch, and the feed tells its
 * clients. Returns a function that stops this.
 */
export function startFailOverCheck(options: FailOverCheckOptions): () => Promise<void> {
  const { pool, primary, leave, everyMs = EVERY_MS } = options
  let known: number | undefined
  let searchedMs = performance.now()
  let hasTimelines = true

  /** A former primary can run on, cut off from the others. The new one has a later timeline. */
  async function search(): Promise<void> {
    searchedMs = performance.now()
    await primary?.find()
  }

  async function check(): Promise<void> {
    if (performance.now() - searchedMs > SEARCH_EVERY_MS) await search()
    const { stored, timeline, isStandby } = await pool.run(sql => readState(sql, hasTimelines))
    if (isStandby) {
      log.warning('The database is a standby. Reconnecting.')
      primary?.forget()
      leave()
    }
    if (timeline === null) return
    known = timeline
    if (timeline === stored) return
    if (await pool.run(sql => storeTimeline(sql, timeline)))
      log.warning(
        'The timeline of the database is {timeline} after {stored}, as after a fail-over. A new epoch begins.',
        { timeline, stored },
      )
  }

  async function run(): Promise<void> {
    // A frozen host does not reply. Its connections stay open.
    const late = setTimeout(() => void search().catch(() => {}), LATE_MS)
    await check().finally(() => clearTimeout(late))
  }

  function onFailure(reason: string, error: unknown): void {
    // Aurora and other forks of Postgres have no WAL files.
    if (hasTimelines && /^(0A|42)/.test(sqlState(error) ?? '')) {
      hasTimelines = false
      log.info('This database does not tell its timeline. Its fail-overs begin no new epoch.')
    } else if (isUnavailable(error))
      log.debug('The check for a fail-over failed: {reason}', { reason })
    else log.error('The check for a fail-over failed: {reason}', { reason })
  }

  const endFollowing = primary?.onMove(leave)
  const checks = startLoop({ everyMs, runsAtOnce: true, round: run, onFailure })
  registerGauge('tidings_database_timeline', 'The timeline of the database.', { read: () => known })
  return () => {
    endFollowing?.()
    return checks.stop()
  }
}

async function readState(sql: Sql, hasTimelines: boolean): Promise<State> {
  const [row] = await sql<[State]>`
    select
      (select timeline from epoch_timeline) as stored, pg_is_in_recovery() as "isStandby",
      ${
        hasTimelines
          ? // The first eight digits of the name of a WAL file are its timeline.
            sql`case when not pg_is_in_recovery()
              then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
            end`
          : sql`null::int`
      } as timeline
  `
  return row
}

/** Stores the timeline. Resolves to whether it is another one, which has begun a new epoch. */
async function storeTimeline(sql: Sql, timeline: number): Promise<boolean> {
  // Of several servers, only the first one finds another timeline.
  const moved = await sql`
    with moved as (
      update epoch_timeline set timeline = ${timeline} where timeline <> ${timeline} returning timeline
    )
    select renew_epoch() from moved
  `
  if (moved.count > 0) return true
  await sql`insert into epoch_timeline (timeline) values (${timeline}) on conflict do nothing`
  return false
}

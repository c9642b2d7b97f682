import { withTimeout } from '../base/functions.ts'
import { describeUnavailable, type Sql } from './sql.ts'

const MISSING_STANDBY =
  'Commits wait for a synchronous standby. Start it, or correct synchronous_standby_names'
/** A commit that waits for longer than this waits for a standby that is missing. */
const STANDBY_S = 1
/** A write that takes longer may wait for a standby. */
const WRITE_MS = 700
const LATE = Symbol('late')

/**
 * Checks that the database stores and commits rows, with a test write. Returns the reason if it
 * does not. `sql` needs two connections: one of them waits with a write that a missing standby
 * holds up.
 */
export async function findWriteProblem(sql: Sql): Promise<string | undefined> {
  // Another test write would wait as well, and keep its connection until the standby is back.
  if (await isWaitingForStandby(sql, STANDBY_S)) return MISSING_STANDBY
  const write = sql`select check_writes()`.then(() => undefined, describeUnavailable)
  const result = await withTimeout(WRITE_MS, write, () => LATE)
  if (typeof result !== 'symbol') return result
  return (await isWaitingForStandby(sql, 0)) ? MISSING_STANDBY : write
}

/** Returns whether a session of this user has waited for a standby for that long. */
async function isWaitingForStandby(sql: Sql, seconds: number): Promise<boolean> {
  const [row] = await sql<[{ is_waiting: boolean }]>`
    select exists (
      select from pg_stat_activity
      where
        datname = current_database() and wait_event = 'SyncRep'
        and state_change < clock_timestamp() - make_interval(secs => ${seconds})
    ) as is_waiting
  `
  return row.is_waiting
}

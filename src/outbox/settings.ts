import type { Fragment, Queryable } from '../db/sql.ts'

/**
 * A row to join in a statement that writes many rows with a foreign key: what checks the key is planned once then. The
 * workers' connections have everything planned anew each time, and that would be once for each row, dearer than the row.
 */
export function checksPlannedOnce(sql: Queryable): Fragment {
  return sql`set_config('plan_cache_mode', 'auto', true) as planned`
}

/**
 * A row to join in a statement whose transaction need not wait for the disk: what a crash of Postgres undoes of it is done
 * again, and whatever rests upon it is undone with it, or has taken it to the disk.
 */
export function committedSoon(sql: Queryable): Fragment {
  return sql`set_config('synchronous_commit', 'off', true) as committed`
}

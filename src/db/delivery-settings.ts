import type { Fragment, Queryable } from './sql.ts'

/** The settings of the pools that deliver. Their plans assume no empty table, and none reads a whole table. */
export const WORKER_SETTINGS = {
  plan_cache_mode: 'force_custom_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  jit: 'off',
}

/**
 * A row to join in a statement that writes many rows with a foreign key. It makes Postgres plan the check of the key once,
 * instead of once for each row, which is what `force_custom_plan` leads to and costs more than the row.
 */
export function planForeignKeyChecksOnce(sql: Queryable): Fragment {
  return sql`set_config('plan_cache_mode', 'auto', true) as planned`
}

/** A row to join in a statement that commits without waiting for fsync. A crash undoes the work, and it is done again. */
export function commitWithoutFsync(sql: Queryable): Fragment {
  return sql`set_config('synchronous_commit', 'off', true) as committed`
}

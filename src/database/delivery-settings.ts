import type { Fragment, Queryable } from './sql.ts'

/**
 * The Postgres settings of the pools that deliver. Their tables are often empty when a plan is
 * made, and large when it runs. So every statement is planned anew, and no plan reads a whole
 * table. The statements of each delivery are functions that pin one plan.
 */
export const WORKER_SETTINGS = {
  plan_cache_mode: 'force_custom_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  jit: 'off',
}

/**
 * Returns a row to join in a statement that can commit without waiting for fsync. After a crash,
 * the lost work is done again.
 */
export function commitWithoutFsync(sql: Queryable): Fragment {
  return sql`set_config('synchronous_commit', 'off', true) as committed`
}

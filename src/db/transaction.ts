import type { Pool } from './pool.ts'
import type { Tx } from './sql.ts'

/** Runs `work` in a transaction of `pool`: all of it happens, or nothing. */
export function transact<Result>(
  pool: Pool,
  work: (tx: Tx) => Promise<Result>,
): Promise<Awaited<Result>> {
  // postgres.js also takes arrays of promises from `work`; ours returns none.
  return pool.run(sql => sql.begin(work)) as Promise<Awaited<Result>>
}

import { logger } from '../base/log.ts'
import { startLoop, type Loop } from '../base/loop.ts'
import type { Pool } from '../database/pool.ts'
import { QUERY_CANCELED, sqlState } from '../database/sql.ts'

const log = logger('db')
const EVERY_MS = 5_000
/** Smaller tables are fast with any plan. */
const MIN_ROWS = 2_000
/** A table is analyzed when it has this many times the rows that Postgres knows of. */
const FACTOR = 4

interface AnalyzeOptions {
  signal?: AbortSignal
  /** The tables whose analysis takes too long. More are added. */
  left?: Set<string>
}

/**
 * Analyzes tables that have grown to several times their size since the last analysis, and returns
 * their names. Postgres then makes new plans in all sessions. Autovacuum does this up to a minute
 * later. Until then, plans that were made on an emptied table read all of its rows.
 */
export async function analyzeGrownTables(
  pool: Pool,
  { signal, left = new Set() }: AnalyzeOptions = {},
): Promise<string[]> {
  const grown = await pool.run(
    sql => sql<{ name: string }[]>`
      select c.relname as name
      from pg_class c
      where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind = 'r'
        and pg_has_role(c.relowner, 'usage')
        and pg_stat_get_live_tuples(c.oid) > ${FACTOR} * greatest(c.reltuples, ${MIN_ROWS})
    `,
  )
  const names: string[] = []
  for (const { name } of grown) {
    if (signal?.aborted) break
    if (left.has(name)) continue
    try {
      // Skips a table that autovacuum works on, which would otherwise be cancelled.
      await pool.run(sql => sql`analyze (skip_locked) ${sql(name)}`)
      names.push(name)
    } catch (error) {
      if (sqlState(error) !== QUERY_CANCELED) throw error
      left.add(name)
    }
  }
  return names
}

/** Starts analyzing grown tables every five seconds. */
export function startAnalyzer(pool: Pool): Loop {
  const left = new Set<string>()
  return startLoop({
    everyMs: EVERY_MS,
    async round(signal) {
      const names = await analyzeGrownTables(pool, { signal, left })
      if (names.length > 0) log.debug('Analyzed tables that have grown: {names}', { names })
    },
    onFailure(reason) {
      // Autovacuum follows anyway, and others warn of a database that cannot be reached.
      log.debug('An analysis of grown tables failed and will be retried: {reason}', { reason })
    },
  })
}

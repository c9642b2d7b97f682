import type { Queryable } from '../../database/sql.ts'
import { countMatches, type MatchCounting } from '../../log/events/count-scan.ts'
import { resolveFilters, type ResolvedFilters } from '../../log/events/resolved-filters.ts'
import { parseSaved } from '../../log/events/search-query.ts'
import type { SeqRange } from '../../log/events/seq-ranges.ts'

/** The threads of rules begin with it, and go on with their ids. */
export const THREAD = 'rule:'

/** An event that the search of a rule finds: its seq, and when it was accepted. */
export interface Arrival {
  seq: number
  atMs: number
}

interface Found {
  /** In the order of the log. */
  arrivals: Arrival[]
  /** The seq at which a limit ended the scan. Undefined if all of the range was scanned. */
  stoppedAt: bigint | undefined
}

/** Looks up what the search of a rule names. Undefined if no event can match. */
export async function resolveRule(sql: Queryable, projectId: string, search: string) {
  const filters = parseSaved(search)
  return filters && (await resolveFilters(sql, projectId, filters, { namesMs: 0 }))
}

/**
 * Finds the events of a range of the log that filters without times find, as `countMatches` does.
 * Rules see no events of rules.
 */
export async function findArrivals(
  sql: Queryable,
  projectId: string,
  filters: ResolvedFilters | undefined,
  range: SeqRange,
  scan: Pick<MatchCounting, 'from' | 'limits'>,
): Promise<Found> {
  if (!filters || range.first > range.last) return { arrivals: [], stoppedAt: undefined }
  const arrivals: Arrival[] = []
  const stoppedAt = await countMatches<Arrival & { n: number }>(
    sql,
    projectId,
    { ...filters, ranges: [range] },
    {
      ...scan,
      columns: sql`e.seq, e.created_at, e.thread`,
      counts: sql`
        select 1 as n, met.seq::float8, floor(extract(epoch from met.created_at) * 1000)::float8 as "atMs"
        from met
        where starts_with(met.thread, ${`${THREAD}rul_`}) is not true
      `,
    },
    found => {
      for (const { seq, atMs } of found) arrivals.push({ seq, atMs })
      return false
    },
  )
  return { arrivals: arrivals.toSorted((a, b) => a.seq - b.seq), stoppedAt }
}

import type { Queryable } from '../../database/sql.ts'
import { countMatches, type MatchCounting } from '../../log/events/count-scan.ts'
import { resolveFilters } from '../../log/events/resolved-filters.ts'
import { parseSaved } from '../../log/events/search-query.ts'
import type { SeqRange } from '../../log/events/seq-ranges.ts'
import { clipRanges } from '../../log/events/seq-ranges.ts'
import type { Arrival } from './evaluate.ts'

/** The threads of rules begin with it. Rules see no events of rules. */
export const THREAD = 'rule:'

interface Found {
  /** In the order of the log. */
  arrivals: Arrival[]
  /** The seq at which a limit ended the scan. Undefined if all of the range was scanned. */
  stoppedAt: bigint | undefined
}

/** Finds the events of a range of the log that a search finds, as `countMatches` does. */
export async function findArrivals(
  sql: Queryable,
  { projectId, search, range }: { projectId: string; search: string; range: SeqRange },
  { wanted = Infinity, ...scan }: Pick<MatchCounting, 'from' | 'limits' | 'wanted'>,
): Promise<Found> {
  const filters = parseSaved(search)
  const resolved = filters && (await resolveFilters(sql, projectId, filters, { namesMs: 0 }))
  if (!resolved) return { arrivals: [], stoppedAt: undefined }
  const ranges = clipRanges(
    clipRanges(resolved.ranges, 'older', range.last + 1n),
    'newer',
    range.first - 1n,
  )
  const arrivals: Arrival[] = []
  const stoppedAt = await countMatches<Arrival & { n: number }>(
    sql,
    projectId,
    { ...resolved, ranges },
    {
      ...scan,
      columns: sql`e.seq, e.created_at, e.thread`,
      counts: sql`
        select 1 as n, met.seq::float8, (extract(epoch from met.created_at) * 1000)::float8 as "atMs"
        from met
        where starts_with(met.thread, ${THREAD}) is not true
      `,
    },
    found => {
      for (const { seq, atMs } of found) arrivals.push({ seq, atMs })
      return arrivals.length >= wanted
    },
  )
  return { arrivals: arrivals.toSorted((a, b) => a.seq - b.seq), stoppedAt }
}

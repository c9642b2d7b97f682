import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import { countMatches, findCompleteSince } from '../events/count-scan.ts'
import type { ScanLimits } from '../events/log-scan.ts'
import type { ResolvedFilters } from '../events/resolved-filters.ts'
import type { Counts, Period } from './channel-counts.ts'
import type { CardGroup } from './schema.ts'

const TIME_LIMIT_MS = 150
/** A scan ends after this many different values, because they stay in memory. */
const MAX_VALUES = 5_000
const MAX_VALUE_LENGTH = 200
/** Metadata may have 256 KiB, so the first batch is small. */
const FIRST_METADATA_BATCH = 16

/** The choices of one scan. */
export interface Counting {
  period: Period
  /** The field whose values are counted, if any. */
  groupBy: CardGroup | null
  /** The path of the value in the metadata. */
  path: readonly string[]
  hasPrevious: boolean
}

/** The matches of a scan. `completeSinceMs` tells how far it came; undefined: to the end. */
export interface ScannedCounts {
  all: Counts
  values: Map<string, number>
  completeSinceMs: number | undefined
}

/**
 * Counts the events that match filters from the newest back, for about 150 ms. Channels are counted
 * by their uuid, and users by the reference in the event. Tags are the only field of which an event
 * can have several values.
 */
export async function countValues(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  counting: Counting,
  limits: ScanLimits = {},
): Promise<ScannedCounts> {
  const { fromMs, toMs, previousFromMs, previousToMs } = counting.period
  const all = { total: 0, previous: 0 }
  const values = new Map<string, number>()
  const matches = {
    columns: sql`e.occurred_at, ${toValues(sql, counting)} as counted`,
    counts: sql`
      with own as (
        select met.occurred_at < ${new Date(fromMs)} as "isPrevious", met.counted
        from met
        where met.occurred_at >= ${new Date(fromMs)} or met.occurred_at < ${new Date(previousToMs)}
      )
      select null as value, own."isPrevious", count(*)::float8 as n
      from own
      group by own."isPrevious"
      union all
      select v.value, own."isPrevious", count(*)::float8
      from own
        cross join lateral unnest(own.counted) as v (value)
      where v.value is not null
      group by v.value, own."isPrevious"
    `,
    limits: {
      timeLimitMs: TIME_LIMIT_MS,
      ...(counting.groupBy === 'metadata' && { firstBatch: FIRST_METADATA_BATCH }),
      ...limits,
    },
  }
  const endedAt = await countMatches<ValueCount>(sql, projectId, resolved, matches, counts => {
    for (const { value, isPrevious, n } of counts) {
      if (value === null) all[isPrevious ? 'previous' : 'total'] += n
      else values.set(value, (values.get(value) ?? 0) + n)
    }
    return values.size > MAX_VALUES
  })
  const bounds = { afterMs: counting.hasPrevious ? previousFromMs : fromMs, beforeMs: toMs }
  const completeSinceMs =
    endedAt === undefined ? undefined : await findCompleteSince(sql, projectId, bounds, endedAt)
  return { all, values, completeSinceMs }
}

/** The matches of a batch with one value; with any value, if it is null. */
interface ValueCount {
  value: string | null
  isPrevious: boolean
  n: number
}

/** SQL for the values of an event `e` that are counted, as an array of texts. */
function toValues(sql: Queryable, { groupBy, path }: Counting): Fragment {
  switch (groupBy) {
    case null:
      return sql`'{}'::text[]`
    case 'channel':
      return sql`array[e.channel_id::text]`
    case 'tag':
      return sql`e.tags`
    case 'user':
      return sql`array[e.user_ref]`
    case 'source':
      return sql`array[e.source]`
    case 'metadata': {
      const keys = toArray(path)
      return sql`array[
        case when json_typeof(e.metadata #> ${keys}::text[]) in ('string', 'number', 'boolean')
          then left(e.metadata #>> ${keys}::text[], ${MAX_VALUE_LENGTH}) end
      ]`
    }
  }
}

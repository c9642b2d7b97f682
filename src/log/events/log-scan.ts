import { toArray } from '../../database/arrays.ts'
import { QUERY_CANCELED, sqlState, type Fragment, type Queryable } from '../../database/sql.ts'
import { toTimeConditions } from './event-conditions.ts'
import type { ResolvedFilters, ResolvedTerms } from './resolved-filters.ts'
import { listPaths, splitMetadata } from './search-filters.ts'
import { canUseTokens, toTokenGroups } from './search-tokens.ts'
import { clipRanges, type Direction, type SeqRange } from './seq-ranges.ts'

/**
 * The source of candidates, in the order of seq: the log, the index of channels or users, the
 * events of a thread, or the search index (`tokens`).
 */
type AccessPath = 'log' | 'channels' | 'users' | 'thread' | 'tokens'

/** One step of a scan: up to `size` candidates from `accessPath`, within `range`. */
export interface ScanBatch {
  accessPath: AccessPath
  direction: Direction
  range: SeqRange
  size: number
  /** The time limit for reading the search index. It always reads at least one bucket. */
  timeLimitMs: number
}

/** The result of one batch. */
export interface BatchResult {
  candidates: number
  /** The last candidate, if any; for the search index, the last seq that it examined. */
  lastSeq: bigint | undefined
  /** True if the caller has enough events. */
  isDone: boolean
}

/** The candidates of a batch, in each row of a statement about it. */
export interface VisitedCandidates {
  candidates: number
  /** The seq of the last candidate, if any. */
  last_seq: string | null
}

/** Limits of a scan, so that one with few matches ends early. */
export interface ScanLimits {
  /** No batch starts after this time; by default 80 ms, and 4 s for up to 4,096 seqs. */
  timeLimitMs?: number
  /** The most candidates; a 16th for filters that parse metadata. Without it, time alone limits. */
  maxCandidates?: number | undefined
  /** The size of the first batch. */
  firstBatch?: number
  /** The number of candidates after which a scan switches to the search index, if that can help. */
  candidatesBeforeIndex?: number
}

export interface ScanOptions extends ScanLimits {
  direction: Direction
  /** Starts after this seq, in the direction; undefined starts at the end of the log. */
  from: bigint | undefined
  /** How many events the caller wants. */
  wanted: number
  /**
   * Passes the candidate of a batch that is too dear to examine. Without it, the candidate is the
   * end of the scan.
   */
  pass?(batch: ScanBatch): Promise<BatchResult>
}

const TIME_LIMIT_MS = 80
/** A small log is answered in one page, also by a busy server, unless its metadata is large. */
const SMALL_LOG_SEQS = 4_096n
const SMALL_LOG_LIMIT_MS = 4_000
/** The time that one batch should take. */
const BATCH_MS = 25
const FIRST_BATCH = 256
/** The same for filters that parse metadata, of which each event may have 256 KiB. */
const FIRST_METADATA_BATCH = 16
/** How often the first batch parses metadata. */
const FIRST_PARSES = 64
const MAX_BATCH = 4_096
/** The number of seqs of a segment, as in event_segments. */
const SEGMENT_SEQS = 4_096n

/** Reads from the rows of a statement about a batch which candidates it has visited. */
export function readVisited([
  { candidates, last_seq: lastSeq } = { candidates: 0, last_seq: null },
]: readonly VisitedCandidates[]): Omit<BatchResult, 'isDone'> {
  return { candidates, lastSeq: lastSeq === null ? undefined : BigInt(lastSeq) }
}

/**
 * Scans a log in batches of growing size, by the cheapest access path for the filters. Returns
 * undefined at the end of the log, or when `visit` is done. Returns the last scanned seq when a
 * limit ends the scan. A batch that times out is the end of the page of a large log, unless it is
 * the first one. Otherwise, it is tried again with a smaller size.
 */
export async function scanLog(
  resolved: ResolvedFilters,
  { direction, from, wanted, pass, ...limits }: ScanOptions,
  visit: (batch: ScanBatch) => Promise<BatchResult>,
): Promise<bigint | undefined> {
  const first = chooseAccessPath(resolved)
  let { accessPath } = first
  let budget = canUseTokens(resolved) ? (limits.candidatesBeforeIndex ?? first.budget) : Infinity
  let ranges = direction === 'older' ? resolved.ranges.toReversed() : resolved.ranges
  if (from !== undefined) ranges = clipRanges(ranges, direction, from)
  const isSmall = limits.timeLimitMs === undefined && countSeqs(ranges) <= SMALL_LOG_SEQS
  const usualMs = isSmall ? SMALL_LOG_LIMIT_MS : TIME_LIMIT_MS
  const limitMs = limits.timeLimitMs ?? (limits.maxCandidates ? Infinity : usualMs)
  const deadline = performance.now() + limitMs
  const parses = countParses(resolved)
  let left = (limits.maxCandidates ?? Infinity) / (parses > 0 ? FIRST_METADATA_BATCH : 1)
  let size = limits.firstBatch ?? FIRST_BATCH
  if (parses > 0) size = Math.min(size, FIRST_METADATA_BATCH, Math.ceil(FIRST_PARSES / parses))
  let reached: bigint | undefined
  for (let [range] = ranges; range; [range] = ranges) {
    if (budget <= 0) {
      accessPath = 'tokens'
      budget = Infinity
      // Most candidates of the search index match, so it needs about as many as are wanted.
      size = Math.min(2 * wanted, parses > FIRST_METADATA_BATCH ? size : MAX_BATCH)
    }
    const limit = Math.min(size, budget, Math.ceil(left))
    const leftMs = Math.min(deadline - performance.now(), SMALL_LOG_LIMIT_MS)
    const timeLimitMs = Math.max(leftMs, 1)
    const batch = { accessPath, direction, range, size: limit, timeLimitMs }
    const startedMs = performance.now()
    let visited = await visit(batch).catch(ignoreTimeout)
    if (!visited && limit > 1) {
      const isLate = !isSmall || performance.now() > deadline
      if (reached !== undefined && isLate) return reached
      size = Math.ceil(limit / 16)
      continue
    }
    visited ??= await pass?.(batch)
    if (!visited) return reached ?? (direction === 'older' ? range.last + 1n : range.first - 1n)
    const { candidates, lastSeq, isDone } = visited
    if (isDone) return undefined
    const isCut = lastSeq !== undefined && (accessPath === 'tokens' || candidates >= limit)
    const seen = isCut ? lastSeq : direction === 'older' ? range.first : range.last
    ranges = clipRanges(ranges, direction, seen)
    reached = seen
    size = growBatch(size, performance.now() - startedMs)
    budget -= candidates
    left -= candidates
    if ((left <= 0 || performance.now() > deadline) && ranges.length > 0) return seen
  }
  return undefined
}

function ignoreTimeout(error: unknown): undefined {
  if (sqlState(error) !== QUERY_CANCELED) throw error
}

function countSeqs(ranges: SeqRange[]): bigint {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1n, 0n)
}

/** Returns how often the filters parse the metadata of an event. */
function countParses({ metadata, groups }: ResolvedTerms): number {
  const terms = groups.flatMap(group => group.terms)
  return [...metadata.is, ...metadata.not]
    .map(text => listPaths(splitMetadata(text)?.path ?? []).length)
    .concat(terms.map(countParses))
    .reduce((sum, count) => sum + count, 0)
}

/** Returns the size of the next batch, so that it takes about `BATCH_MS`. */
function growBatch(size: number, tookMs: number): number {
  const factor = Math.min(4, BATCH_MS / Math.max(tookMs, 0.1))
  return Math.min(Math.max(Math.ceil(size * factor), 1), MAX_BATCH)
}

/**
 * Chooses the first access path, and a budget: the number of candidates before the search index
 * takes over. A user has few events, so the index of users is enough. Frequent matches are soon
 * found in the log or a channel. The search index finds rare ones.
 */
function chooseAccessPath({ channelIds, users, threadSeq }: ResolvedFilters): {
  accessPath: AccessPath
  budget: number
} {
  if (threadSeq !== undefined) return { accessPath: 'thread', budget: Infinity }
  // The index has whole references.
  if (users && users.beginnings.length + users.names.length === 0)
    return { accessPath: 'users', budget: 2_048 }
  return { accessPath: channelIds ? 'channels' : 'log', budget: 512 }
}

/**
 * Selects the `seq` of each candidate of a batch, in its direction. The row comparisons keep the
 * planner from using the primary key instead of the index of the access path.
 */
export function toCandidates(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  { accessPath, direction, range, size, timeLimitMs }: ScanBatch,
): Fragment {
  const [first, last] = [String(range.first), String(range.last)]
  const order = direction === 'older' ? sql`desc` : sql`asc`
  switch (accessPath) {
    case 'log': {
      const start = toStart(sql, projectId, resolved, { direction, range })
      const [from, to] = direction === 'older' ? [sql`${first}`, start] : [start, sql`${last}`]
      return sql`
        select e.seq
        from events e
        where e.project_id = ${projectId} and e.seq between ${from} and ${to}
        order by e.seq ${order}
        limit ${size}
      `
    }
    case 'thread':
      return sql`
        select e.seq
        from thread_events e
        where e.project_id = ${projectId} and e.thread_seq = ${resolved.threadSeq ?? 0}
          and e.seq between ${first} and ${last}
        order by e.seq ${order}
        limit ${size}
      `
    case 'channels':
    case 'users': {
      const isByUser = accessPath === 'users'
      const column = isByUser ? sql`e.user_ref` : sql`e.channel_id`
      const keys = isByUser
        ? sql`${toArray(resolved.users?.references ?? [])}::text[]`
        : sql`${toArray(resolved.channelIds ?? [])}::uuid[]`
      return sql`
        select found.seq
        from unnest(${keys}) as asked (key)
          cross join lateral (
            select e.seq
            from events e
            where e.project_id = ${projectId} and ${column} is not null
              and (${column}, e.seq) >= (asked.key, ${first}::bigint)
              and (${column}, e.seq) <= (asked.key, ${last}::bigint)
            order by ${column} ${order}, e.seq ${order}
            limit ${size}
          ) found
        order by found.seq ${order}
        limit ${size}
      `
    }
    case 'tokens': {
      const { numbers, lows, highs } = toTokenGroups(resolved)
      return sql`
        select f.seq
        from find_token_candidates(
          project => ${projectId},
          groups => ${toArray(numbers)}::int[],
          lows => ${toArray(lows)}::text[],
          highs => ${toArray(highs)}::text[],
          first_seq => ${first},
          last_seq => ${last},
          is_newest_first => ${direction === 'older'},
          max_rows => ${size},
          time_limit_ms => ${timeLimitMs}
        ) as f (seq)
      `
    }
  }
}

/**
 * Returns SQL for the seq from which a scan of a range starts. Up to 4,095 events of its first
 * segment can be outside the time of the filters. One look-up passes them, which is cheaper than
 * batches of candidates.
 */
function toStart(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  { direction, range: { first, last } }: Pick<ScanBatch, 'direction' | 'range'>,
): Fragment {
  const isOlder = direction === 'older'
  if (resolved.afterMs === null && resolved.beforeMs === null) {
    return sql`${String(isOlder ? last : first)}::bigint`
  }
  const beyond = isOlder ? last - SEGMENT_SEQS : first + SEGMENT_SEQS
  const [low, high] = isOlder ? [beyond, last] : [first, beyond]
  return sql`coalesce(
    (
      select e.seq
      from events e
      where e.project_id = ${projectId} and e.seq between ${String(low)} and ${String(high)}
        ${toTimeConditions(sql, resolved)}
      order by e.seq ${isOlder ? sql`desc` : sql`asc`}
      limit 1
    ),
    ${String(beyond)}::bigint
  )`
}

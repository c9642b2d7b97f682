import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import type { Criteria } from './criteria.ts'
import { clip, type Direction, type Range } from './ranges.ts'

/** The source of candidates in the order of seq: the log, the index of channels or users, or the search index. */
type Driver = 'log' | 'channels' | 'users' | 'tokens'

/** One step: up to `most` candidates of `driver`, among the seqs of `range`. */
export interface Window {
  driver: Driver
  direction: Direction
  range: Range
  most: number
  /** The time limit of the search index; it reads at least some buckets. */
  spendMs: number
}

/** The result of visiting one window. */
export interface Visited {
  candidates: number
  /** The last candidate, if any; for the search index, how far it looked. */
  reached: bigint | undefined
  /** Whether the list is complete. */
  isDone: boolean
}

/** Limits of a walk that finds few matches. */
export interface Patience {
  /** Begins no window after this time, 80 ms by default. */
  spendMs?: number
  /** Begins no window after this many candidates. */
  spendCandidates?: number
  /** Candidates of the first window. */
  firstWindow?: number
  /** Candidates after which a search continues with its index. */
  beforeSearch?: number
}

export interface WalkOptions extends Patience {
  direction: Direction
  /** Begins after this seq, in the direction. */
  from: bigint | undefined
  /** How many events the caller wants. */
  wanted: number
}

const SPEND_MS = 80
const FIRST_WINDOW = 256
const MAX_WINDOW = 4_096

/**
 * Visits the log in windows that grow, with the cheapest driver for the criteria. Returns the seq that it reached when
 * time or candidates ran out. Returns undefined at the end of the log, or when `visit` is done.
 */
export async function walk(
  criteria: Criteria,
  { direction, from, wanted, ...patience }: WalkOptions,
  visit: (window: Window) => Promise<Visited>,
): Promise<bigint | undefined> {
  const deadline = performance.now() + (patience.spendMs ?? SPEND_MS)
  const first = toFirstStep(criteria)
  let { driver } = first
  let budget = isSearch(criteria) ? (patience.beforeSearch ?? first.budget) : Infinity
  let ranges = direction === 'older' ? criteria.ranges.toReversed() : criteria.ranges
  if (from !== undefined) ranges = clip(ranges, direction, from)
  let most = patience.firstWindow ?? FIRST_WINDOW
  let spent = 0
  for (let [range] = ranges; range; [range] = ranges) {
    if (budget <= 0) {
      driver = 'tokens'
      budget = Infinity
      // Most of its candidates match, and it reads until it has this many.
      most = Math.min(2 * wanted, MAX_WINDOW)
    }
    const limit = Math.min(most, budget)
    const spendMs = Math.max(deadline - performance.now(), 1)
    const window = { driver, direction, range, most: limit, spendMs }
    const { candidates, reached, isDone } = await visit(window)
    if (isDone) return undefined
    const isCut = reached !== undefined && (driver === 'tokens' || candidates >= limit)
    const seen = isCut ? reached : direction === 'older' ? range.first : range.last
    ranges = clip(ranges, direction, seen)
    most = Math.min(4 * most, MAX_WINDOW)
    spent += candidates
    budget -= candidates
    const isOver = performance.now() > deadline || spent >= (patience.spendCandidates ?? Infinity)
    if (isOver && ranges.length > 0) return seen
  }
  return undefined
}

/**
 * A user has few events, and their index is enough. Frequent matches are among the newest events of the log or of a
 * channel; after the budget, the search index finds the rare ones.
 */
function toFirstStep({ channelIds, references }: Criteria): { driver: Driver; budget: number } {
  if (references) return { driver: 'users', budget: 2_048 }
  return { driver: channelIds ? 'channels' : 'log', budget: 512 }
}

/** Whether the search index can help. Channels have a better one, in the order of the log. */
function isSearch({ sources, tags, lexemes }: Criteria): boolean {
  return [sources.is, tags.is, lexemes].some(list => list.length > 0)
}

/**
 * Selects the `seq` of the candidates in a window, in its direction. The comparisons of rows keep the planner from using
 * the primary key in place of the driver's index.
 */
export function toCandidates(
  sql: Queryable,
  projectId: string,
  criteria: Criteria,
  { driver, direction, range, most, spendMs }: Window,
): Fragment {
  const [first, last] = [String(range.first), String(range.last)]
  const order = direction === 'older' ? sql`desc` : sql`asc`
  switch (driver) {
    case 'log':
      return sql`
        select e.seq
        from events e
        where e.project_id = ${projectId} and e.seq between ${first} and ${last}
        order by e.seq ${order}
        limit ${most}
      `
    case 'channels':
      return sql`
        select found.seq
        from unnest(${toArray(criteria.channelIds ?? [])}::uuid[]) as asked (id)
          cross join lateral (
            select e.seq
            from events e
            where e.project_id = ${projectId}
              and (e.channel_id, e.seq) >= (asked.id, ${first}::bigint)
              and (e.channel_id, e.seq) <= (asked.id, ${last}::bigint)
            order by e.channel_id ${order}, e.seq ${order}
            limit ${most}
          ) found
        order by found.seq ${order}
        limit ${most}
      `
    case 'users':
      return sql`
        select found.seq
        from unnest(${toArray(criteria.references ?? [])}::text[]) as asked (reference)
          cross join lateral (
            select e.seq
            from events e
            where e.project_id = ${projectId} and e.user_ref is not null
              and (e.user_ref, e.seq) >= (asked.reference, ${first}::bigint)
              and (e.user_ref, e.seq) <= (asked.reference, ${last}::bigint)
            order by e.user_ref ${order}, e.seq ${order}
            limit ${most}
          ) found
        order by found.seq ${order}
        limit ${most}
      `
    case 'tokens':
      return sql`
        select f.seq
        from find_events(
          ${projectId}, ${toArray(criteria.channelIds ?? [])}::uuid[],
          ${toArray(criteria.sources.is)}::text[], ${toArray(criteria.tags.is)}::text[],
          ${toArray(criteria.lexemes)}::text[], ${first}, ${last}, ${direction === 'older'}, ${most},
          ${spendMs}
        ) as f (seq)
      `
  }
}

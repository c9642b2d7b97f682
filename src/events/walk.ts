import type { Criteria } from './criteria.ts'
import { clip, type Direction, type Range } from './ranges.ts'

/** What yields the seqs of candidates in order: the log itself, an index of it, or the search index. */
export type Driver = 'log' | 'channels' | 'users' | 'tokens'

/** A part of the way: at most so many candidates of `driver`, among the seqs of `range`. */
export interface Window {
  driver: Driver
  direction: Direction
  range: Range
  most: number
  /** What the search index may spend: it looks at some buckets at least. */
  spendMs: number
}

/** What was met in a window. */
export interface Visited {
  candidates: number
  /** The last candidate, where there was one; of the search index, always how far it has looked. */
  reached: bigint | undefined
  /** Whether nothing more is wanted. */
  isDone: boolean
}

/** How far to go on looking when little matches. */
export interface Patience {
  /** Begins no further window after so long, 80 ms by default. */
  spendMs?: number
  /** Begins no further window after so many candidates. */
  spendCandidates?: number
  /** Candidates of the first window. */
  firstWindow?: number
  /** Candidates beyond which a search goes on with its index. */
  beforeSearch?: number
}

export interface WalkOptions extends Patience {
  direction: Direction
  /** Goes on beyond this seq. */
  from: bigint | undefined
  /** How many events are wanted. */
  wanted: number
}

const SPEND_MS = 80
const FIRST_WINDOW = 256
const MAX_WINDOW = 4_096

/**
 * Goes through the log along the drivers that the criteria have, in windows that grow. Returns the seq up to which all
 * was seen, where time or candidates ran out; undefined at the end, or when nothing more is wanted.
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
      // Most of what it finds is a match, and it looks until it has found so many.
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
 * A person has few events, and who asks for one gets along with their index. What many events have is soon found among
 * the newest of the log or of a channel, and the search index then finds what few have.
 */
function toFirstStep({ channelIds, references }: Criteria): { driver: Driver; budget: number } {
  if (references) return { driver: 'users', budget: 2_048 }
  return { driver: channelIds ? 'channels' : 'log', budget: 512 }
}

/** Whether the search index can help: it knows channels, too, but those have an index in the order of the log. */
function isSearch({ sources, tags, lexemes }: Criteria): boolean {
  return [sources.is, tags.is, lexemes].some(list => list.length > 0)
}

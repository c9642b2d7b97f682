import type { Level } from '../channels/level.ts'
import type { ResolvedGroup, ResolvedTerms, TextPattern } from './resolved-filters.ts'

/** The largest code point, which ends a range of all tokens with a prefix. */
const LAST = '\u{10ffff}'

/** A range of tokens in the search index; both ends belong to it. */
interface TokenRange {
  low: string
  high: string
}

/** A condition that each match fulfils: it has a token of at least one of these ranges. */
interface Clause {
  ranges: TokenRange[]
  /** Clauses with a higher rank usually have fewer events. */
  rank: number
}

/**
 * Returns true if the search index finds fewer candidates than the other indexes. Channels have a
 * better index of their own.
 */
export function canUseTokens(terms: ResolvedTerms): boolean {
  const { sources, levels, states, threads, tags, texts, groups } = terms
  const lists = [sources.is, listLevels(levels), states.is, threads.is, tags.is, listTokens(texts)]
  return (
    lists.some(list => list.length > 0) || groups.some(group => toGroupClause(group) !== undefined)
  )
}

/** Returns the ranges of tokens for find_token_candidates. Those of one clause have one number. */
export function toTokenGroups(terms: ResolvedTerms): {
  numbers: number[]
  lows: string[]
  highs: string[]
} {
  const ranges = toClauses(terms).flatMap((clause, n) =>
    clause.ranges.map(range => ({ ...range, number: n + 1 })),
  )
  return {
    numbers: ranges.map(({ number }) => number),
    lows: ranges.map(({ low }) => low),
    highs: ranges.map(({ high }) => high),
  }
}

function toClauses(terms: ResolvedTerms): Clause[] {
  const { channelIds, sources, levels, states, threads, tags, texts, groups } = terms
  const exactly = (token: string) => ({ low: token, high: token })
  const toWord = (word: string) => {
    // Events with very many words have the token `*`, which stands for every word.
    return {
      ranges: [{ low: word, high: word + LAST }, exactly('*')],
      rank: 3 + word.length / 1_000,
    }
  }
  const channels = (channelIds ?? []).map(id => exactly(`=${id}`))
  const clauses = [
    { ranges: channels, rank: 0 },
    { ranges: sources.is.map(source => exactly(`@${source}`)), rank: 1 },
    { ranges: listLevels(levels).map(level => exactly(`!${level}`)), rank: 2 },
    { ranges: states.is.map(state => exactly(`!${state}`)), rank: 2 },
    { ranges: threads.is.map(key => exactly(`%${key}`)), rank: 5 },
    ...tags.is.map(tag => ({ ranges: [exactly(`#${tag}`)], rank: 2 })),
    ...listTokens(texts).map(toWord),
    ...groups.flatMap(group => toGroupClause(group) ?? []),
  ]
  return clauses.filter(({ ranges }) => ranges.length > 0)
}

/** Lists the levels that events must have one of, if each has a token: normal events have none. */
function listLevels({ is }: ResolvedTerms['levels']): Level[] {
  return is.includes('normal') ? [] : is
}

function listTokens(texts: readonly TextPattern[]): string[] {
  return [...new Set(texts.flatMap(({ tokens }) => tokens))]
}

/**
 * Returns a clause with the best one of each alternative. All combinations would be more exact, and
 * exponentially many. Returns undefined if an alternative has no token.
 */
function toGroupClause({ isExcluded, terms }: ResolvedGroup): Clause | undefined {
  if (isExcluded) return undefined
  const chosen: Clause[] = []
  for (const alternative of terms) {
    const [best] = toClauses(alternative).toSorted((a, b) => b.rank - a.rank)
    if (!best) return undefined
    chosen.push(best)
  }
  return {
    ranges: chosen.flatMap(({ ranges }) => ranges),
    rank: Math.min(...chosen.map(({ rank }) => rank)),
  }
}

import type { Card } from '../../../log/insights/schema.ts'
import { toExactTime } from '../feed/reader-dates.ts'
import { EMPTY_SEARCH, toSearchPath, toTermText } from '../feed/search.ts'
import { toHoursStart } from '../time-texts.ts'

/** The feed with the matches of a card, in its period. */
export function toMatchesPath(project: string, { q, hours }: Pick<Card, 'q' | 'hours'>): string {
  const from = toExactTime(toHoursStart(hours))
  return toSearchPath(project, { ...EMPTY_SEARCH, text: q, from })
}

/** The feed with the matches of one value; undefined if it cannot be searched for. */
export function toValuePath(
  project: string,
  { q, hours, groupBy, metadataPath }: Card,
  value: string,
): string | undefined {
  if (groupBy === null) return undefined
  const term =
    groupBy === 'metadata'
      ? toTermText('meta', `${metadataPath}=${value}`)
      : toTermText(groupBy, value)
  return term && toMatchesPath(project, { q: addTerm(q, term), hours })
}

/** The search for the matches of `q` that a term finds, too. */
function addTerm(q: string, term: string): string {
  // Without parentheses, OR binds last, and several channels, users or sources are alternatives.
  const isApart = / OR /.test(q) || q.includes(term.slice(0, term.indexOf(':') + 1))
  return `${isApart ? `(${q})` : q} ${term}`.trim()
}

/** The feed with the matches between two times. */
export function toRangePath(project: string, { q }: Card, fromMs: number, toMs: number): string {
  const range = { from: toExactTime(fromMs), to: toExactTime(toMs) }
  return toSearchPath(project, { ...EMPTY_SEARCH, text: q, ...range })
}

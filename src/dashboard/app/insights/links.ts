import type { Card, CardGroup } from '../../../log/insights/schema.ts'
import { toSearchPath, toTermText, TIME_RANGES } from '../feed/search.ts'

const HOUR_MS = 3_600_000
const LISTS = {
  channel: 'channels',
  tag: 'tags',
  user: 'users',
  source: 'sources',
  metadata: 'metadata',
} as const satisfies Record<CardGroup, string>

/** The feed with the matches of a card, in its period. */
export function toMatchesPath(project: string, { q, hours }: Pick<Card, 'q' | 'hours'>): string {
  return toSearchPath(project, {
    channelId: undefined,
    text: q,
    from: toFrom(hours),
    to: undefined,
  })
}

/** The feed with the matches of one value; undefined if it cannot be searched for. */
export function toValuePath(
  project: string,
  { q, hours, groupBy, metadataPath }: Card,
  value: string,
): string | undefined {
  if (groupBy === null) return undefined
  const text = groupBy === 'metadata' ? `${metadataPath}=${value}` : value
  const term = toTermText(LISTS[groupBy], text)
  if (term === undefined) return undefined
  return toMatchesPath(project, { q: addTerm(q, term), hours })
}

/** The search for the matches of `q` that a term finds, too. */
function addTerm(q: string, term: string): string {
  // Without parentheses, OR binds last, and several channels, users or sources are alternatives.
  const isApart = / OR /.test(q) || q.includes(term.slice(0, term.indexOf(':') + 1))
  return `${isApart ? `(${q})` : q} ${term}`.trim()
}

/** The feed with the matches between two times. */
export function toRangePath(project: string, { q }: Card, fromMs: number, toMs: number): string {
  const toMoment = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z')
  return toSearchPath(project, {
    channelId: undefined,
    text: q,
    from: toMoment(fromMs),
    to: toMoment(toMs),
  })
}

function toFrom(hours: number): string {
  const named = Object.entries(TIME_RANGES).find(([, ms]) => ms === hours * HOUR_MS)
  return named?.[0] ?? new Date(Date.now() - hours * HOUR_MS).toISOString()
}

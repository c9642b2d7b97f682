import type { Queryable } from '../../database/sql.ts'
import { findFirstSeqSince } from '../../log/events/seq-ranges.ts'
import { findArrivals, resolveRule } from './arrivals.ts'
import { begin, evaluate } from './evaluate.ts'
import { checkRuleSearch } from './rules.ts'
import type { RulePreview, RulePreviewInput } from './schema.ts'

const DAY_MS = 86_400_000
/** No batch is read after this time. */
const SCAN_MS = 700
const MAX_ARRIVALS = 200_000
const MAX_FIRINGS = 50

/**
 * Evaluates a condition over the kept log, as if a rule had looked since then. It reads from the
 * newest event back. Throws `InvalidRequest` for a bad search.
 */
export async function previewRule(
  sql: Queryable,
  projectId: string,
  { q, moreThan, withinSeconds, days = 30 }: RulePreviewInput,
): Promise<RulePreview> {
  const search = checkRuleSearch(q)
  const condition = { moreThan, withinMs: withinSeconds * 1000 }
  const [log] = await sql<[{ first: string | null; last: string; nowMs: number }]>`
    select
      first_seq_of(l.project_id) as first, l.last_seq as last,
      extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"
    from log_of(${projectId}) l
  `
  if (log.first === null) return { count: 0, firings: [], since: null, isComplete: true }
  const { nowMs } = log
  const startMs = nowMs - days * DAY_MS
  // The time before decides how it begins.
  const beforeMs = startMs - condition.withinMs
  const since = await findFirstSeqSince(sql, projectId, new Date(beforeMs))
  const first = BigInt(log.first)
  const { arrivals, stoppedAt } = await findArrivals(
    sql,
    projectId,
    await resolveRule(sql, projectId, search),
    { first: since > first ? since : first, last: BigInt(log.last) },
    { wanted: MAX_ARRIVALS, limits: { timeLimitMs: SCAN_MS } },
  )
  const [seen] = await sql<{ atMs: number }[]>`
    select extract(epoch from created_at)::float8 * 1000 as "atMs"
    from first_event_from(${projectId}, ${String(stoppedAt ?? first)})
  `
  const sinceMs = Math.max(seen?.atMs ?? 0, beforeMs)
  const times = arrivals.map(({ atMs }) => atMs)
  let firings: RulePreview['firings'] = []
  for (const { kind, atMs } of evaluate(condition, begin(condition, sinceMs), times, nowMs)
    .changes) {
    const at = new Date(Math.max(atMs, startMs)).toISOString()
    const last = firings.at(-1)
    if (kind === 'fires') firings.push({ from: at, to: null })
    else if (last) last.to = at
  }
  firings = firings.filter(({ from, to }) => from !== to)
  return {
    count: firings.length,
    firings: firings.slice(-MAX_FIRINGS).toReversed(),
    since: new Date(Math.max(sinceMs, startMs)).toISOString(),
    isComplete: stoppedAt === undefined,
  }
}

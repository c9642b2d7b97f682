import type { Queryable } from '../../database/sql.ts'
import { parseCursor, toCursor } from '../../http/paging.ts'
import { findFirstSeqSince } from '../../log/events/seq-ranges.ts'
import { findArrivals, resolveRule } from './arrivals.ts'
import { begin, evaluate, type RuleState } from './evaluate.ts'
import { checkRuleSearch } from './rules.ts'
import type { RulePreview, RulePreviewInput } from './schema.ts'

const DAY_MS = 86_400_000
/** One preview looks at so many events, or fewer if reading the search index takes long. */
const LIMITS = { maxCandidates: 100_000, timeLimitMs: 700 }
const MAX_FIRINGS = 50

/**
 * Evaluates a condition over the kept log, oldest first, as if a rule had looked since then. A
 * cursor continues where an earlier preview ended. Throws `InvalidRequest` for a bad search.
 */
export async function previewRule(
  sql: Queryable,
  projectId: string,
  { q, moreThan, withinSeconds, days = 30, cursor }: RulePreviewInput,
): Promise<RulePreview> {
  const search = checkRuleSearch(q)
  const condition = { moreThan, withinMs: withinSeconds * 1000 }
  const known = parseState(cursor)
  const [log] = await sql<[{ first: string | null; last: string; nowMs: number }]>`
    select
      first_seq_of(l.project_id) as first, l.last_seq as last,
      extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"
    from log_of(${projectId}) l
  `
  if (log.first === null)
    return { count: 0, firings: [], since: null, until: null, nextCursor: null }
  const startMs = log.nowMs - days * DAY_MS
  // The time before decides how it begins.
  const beforeMs = startMs - condition.withinMs
  const findAtMs = async (seq: bigint) => {
    const [seen] = await sql<{ atMs: number }[]>`
      select floor(extract(epoch from created_at) * 1000)::float8 as "atMs"
      from first_event_from(${projectId}, ${String(seq)})
    `
    return Math.max(seen?.atMs ?? 0, beforeMs)
  }
  const oldest = known ? 1n : await findFirstSeqSince(sql, projectId, new Date(beforeMs))
  const from = known?.seq ?? (oldest > BigInt(log.first) ? oldest : BigInt(log.first)) - 1n
  const sinceMs = await findAtMs(from + 1n)
  const filters = await resolveRule(sql, projectId, search)
  const { arrivals, stoppedAt } = await findArrivals(
    sql,
    projectId,
    filters,
    { first: from + 1n, last: BigInt(log.last) },
    { from, limits: LIMITS },
  )
  const untilMs = stoppedAt === undefined ? log.nowMs : await findAtMs(stoppedAt)
  const before = known?.state ?? begin(condition, Math.floor(sinceMs))
  const { state, changes } = evaluate(
    condition,
    before,
    arrivals.map(({ atMs }) => atMs),
    stoppedAt === undefined ? untilMs : undefined,
  )
  const toTime = (atMs: number) => new Date(Math.max(atMs, startMs)).toISOString()
  let firings: RulePreview['firings'] =
    before.firingMs === null ? [] : [{ from: toTime(before.firingMs), to: null }]
  for (const { kind, atMs } of changes) {
    if (kind === 'fires') firings.push({ from: toTime(atMs), to: null })
    else firings.at(-1)!.to = toTime(atMs)
  }
  // The next part has the one that still fires.
  firings = firings.filter(({ from, to }) => from !== to && (to ?? stoppedAt === undefined))
  return {
    count: firings.length,
    firings: firings.slice(-MAX_FIRINGS).toReversed(),
    since: toTime(sinceMs),
    until: toTime(untilMs),
    nextCursor:
      stoppedAt === undefined
        ? null
        : toCursor([String(stoppedAt), state.firingMs ?? '', state.recent.join()]),
  }
}

/** Decodes where a preview continues. Throws `InvalidRequest`. */
function parseState(cursor: string | undefined): { seq: bigint; state: RuleState } | undefined {
  const parts = parseCursor(cursor, [/^\d{1,18}$/, /^\d{0,15}$/, /^(\d{1,15}(,|$))*$/])
  if (!parts) return undefined
  const [seq, firing, recent] = parts as [string, string, string]
  const state = {
    recent: recent === '' ? [] : recent.split(',').map(Number),
    firingMs: firing === '' ? null : Number(firing),
  }
  return { seq: BigInt(seq), state }
}

import type { Queryable } from '../../database/sql.ts'
import { countMatches } from '../events/count-scan.ts'
import { resolveFilters } from '../events/resolved-filters.ts'
import { parseSaved } from '../events/search-query.ts'
import { clipRanges } from '../events/seq-ranges.ts'
import { MAX_NEW, type View } from './schema.ts'
import { toViewId, type StoredView } from './views.ts'

/** The events that are examined for one view, and for all views of a request. */
const VIEW_CANDIDATES = 4_096
const ALL_CANDIDATES = 16_384
/** The time for one view, and for all. Most counts end before it, so that they do not vary. */
const VIEW_MS = 200
const TOTAL_MS = 1_000
/** The count of a view that could not be counted. */
export const UNCOUNTED = { newEvents: null, isPartial: true }
/** A batch is small, so that it can end soon after the time limit. */
const FIRST_BATCH = 128

/**
 * Counts the matches of views that are newer than their marks, from the newest event back, in 4,096
 * events or in the view's share of 16,384, for up to a second in all. A count that ends early is
 * partial, and views that it does not come to have none.
 */
export async function countNewEvents(
  sql: Queryable,
  projectId: string,
  views: readonly StoredView[],
): Promise<View[]> {
  const deadline = performance.now() + TOTAL_MS
  const [log] = await sql<{ head: string }[]>`
    select last_seq as head from event_logs where project_id = ${projectId}
  `
  const head = BigInt(log?.head ?? 0)
  const maxCandidates = Math.min(VIEW_CANDIDATES, Math.ceil(ALL_CANDIDATES / views.length))
  const counted: View[] = []
  for (const view of views) {
    const isLate = performance.now() > deadline
    const isEmpty = head <= view.markSeq
    const count = isEmpty
      ? { newEvents: 0, isPartial: false }
      : isLate
        ? UNCOUNTED
        : await countView(sql, projectId, view, maxCandidates)
    counted.push(toView(view, count))
  }
  return counted
}

export function toView(
  { uuid, name, q, isShared, hasBell, createdAt }: StoredView,
  count: Pick<View, 'newEvents' | 'isPartial'>,
): View {
  return { id: toViewId(uuid), name, q, isShared, hasBell, ...count, createdAt }
}

async function countView(
  sql: Queryable,
  projectId: string,
  { q, markSeq }: StoredView,
  maxCandidates: number,
): Promise<Pick<View, 'newEvents' | 'isPartial'>> {
  const filters = parseSaved(q)
  const resolved = filters && (await resolveFilters(sql, projectId, filters))
  if (!resolved) return { newEvents: 0, isPartial: false }
  const unseen = { ...resolved, ranges: clipRanges(resolved.ranges, 'newer', markSeq) }
  let found = 0
  const counting = {
    counts: sql`select count(*)::float8 as n from met`,
    wanted: MAX_NEW,
    limits: { timeLimitMs: VIEW_MS, maxCandidates, firstBatch: FIRST_BATCH },
  }
  const stopped = await countMatches(sql, projectId, unseen, counting, ([counted]) => {
    found += counted?.n ?? 0
    return found >= MAX_NEW
  })
  return {
    newEvents: Math.min(found, MAX_NEW),
    isPartial: stopped !== undefined || found >= MAX_NEW,
  }
}

import type { Queryable } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { parseId, toId } from '../ids.ts'
import {
  isCoveredByIndex,
  resolveFilters,
  toConditions,
  type ResolvedFilters,
} from './resolved-filters.ts'
import { parseListCursor, toListCursor, type LogPosition } from './seq-ranges.ts'
import { eventColumns, eventJoins, storedColumns } from './event-columns.ts'
import { toEventJson, type EventRow } from './event-json.ts'
import type { SearchFilters } from './search-query.ts'
import type { Neighbours } from './search-schema.ts'
import {
  toCandidates,
  scanLog,
  type ScanLimits,
  type BatchResult,
  type ScanBatch,
} from './log-scan.ts'

/** The start of a page of a list, and its number of events. */
export interface PageQuery {
  cursor?: string
  /** Reads forward, from the event after this seq. */
  after?: number
  limit?: number
}

/** Returns the JSON of one event. Throws `not_found`. */
export async function getEventJson(sql: Queryable, projectId: string, id: string): Promise<string> {
  const json = await findEventJson(sql, projectId, id)
  if (json === undefined) throw new Fault('not_found', 'No event has this id')
  return json
}

/** Returns the JSON of one event; undefined when it does not exist or is deleted. */
export async function findEventJson(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<string | undefined> {
  const uuid = parseId('evt', id)
  const [row] = uuid
    ? await sql<EventRow[]>`
        select ${eventColumns(sql)}
        from events e
          ${eventJoins(sql)}
        where e.project_id = ${projectId} and e.id = ${uuid} and e.deleted_at is null
      `
    : []
  return row && toEventJson(row)
}

/** Finds the events before and after a seq, without filters. */
export async function findNeighbours(
  sql: Queryable,
  projectId: string,
  seq: number,
): Promise<Neighbours> {
  const rows = await sql<{ id: string; seq: string }[]>`
    (
      select e.id, e.seq
      from events e
      where e.project_id = ${projectId} and e.seq < ${seq} and e.deleted_at is null
      order by e.seq desc
      limit 1
    )
    union all
    (
      select e.id, e.seq
      from events e
      where e.project_id = ${projectId} and e.seq > ${seq} and e.deleted_at is null
      order by e.seq
      limit 1
    )
  `
  const found = rows.map(row => ({ id: toId('evt', row.id), seq: Number(row.seq) }))
  return {
    older: found.find(one => one.seq < seq) ?? null,
    newer: found.find(one => one.seq > seq) ?? null,
  }
}

/**
 * Returns the JSON of a page of events, newest first, or in the order of the log with `after`. When
 * matches are rare, a page can be short or empty. Its `nextCursor` continues from there. It is null
 * only at the end of the log.
 */
export async function listEventsJson(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  { cursor, after, limit = 50 }: PageQuery,
  limits: ScanLimits = {},
): Promise<string> {
  const start: LogPosition | undefined =
    parseListCursor(cursor) ??
    (after === undefined ? undefined : { direction: 'newer', seq: BigInt(after) })
  const direction = start?.direction ?? 'older'
  const resolved = await resolveFilters(sql, projectId, filters)
  if (!resolved) return '{"items":[],"nextCursor":null}'
  const rows: EventRow[] = []
  const firstBatch = isCoveredByIndex(resolved) ? limit + 1 : Math.max(4 * limit, 256)
  const options = { direction, from: start?.seq, wanted: limit + 1, firstBatch, ...limits }
  const stopped = await scanLog(resolved, options, async batch => {
    const { found, ...visited } = await readBatch(sql, projectId, resolved, {
      ...batch,
      limit: limit + 1 - rows.length,
    })
    rows.push(...found)
    return { ...visited, isDone: rows.length > limit }
  })
  const page = rows.slice(0, limit)
  const continueAfter = rows.length > limit ? BigInt(page.at(-1)?.seq ?? 0) : stopped
  const nextCursor =
    continueAfter === undefined ? null : toListCursor({ direction, seq: continueAfter })
  return `{"items":[${page.map(toEventJson).join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

type BatchRow = { candidates: number; last_seq: string | null } & (EventRow | { id: null })

/** Reads the matching events of a batch, and how far its candidates reach. */
async function readBatch(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  { limit, ...batch }: ScanBatch & { limit: number },
): Promise<Omit<BatchResult, 'isDone'> & { found: EventRow[] }> {
  const order = batch.direction === 'older' ? sql`desc` : sql`asc`
  const rows = await sql<BatchRow[]>`
    with candidates as materialized (
      ${toCandidates(sql, projectId, resolved, batch)}
    ), met as materialized (
      select ${storedColumns(sql)}
      from candidates
        cross join lateral (
          select ${storedColumns(sql)}
          from events e
          where e.project_id = ${projectId} and e.seq = candidates.seq
            and ${toConditions(sql, resolved)}
          -- Forces a look-up by the primary key for each candidate.
          offset 0
        ) e
      order by candidates.seq ${order}
      limit ${limit}
    ), seen as (
      select count(*)::int as candidates, ${batch.direction === 'older' ? sql`min` : sql`max`}(seq) as last_seq
      from candidates
    )
    select seen.candidates, seen.last_seq, ${eventColumns(sql)}
    from seen
      left join met e on true
      ${eventJoins(sql)}
    order by e.seq ${order}
  `
  const [{ candidates, last_seq: lastSeq } = { candidates: 0, last_seq: null }] = rows
  return {
    candidates,
    lastSeq: lastSeq === null ? undefined : BigInt(lastSeq),
    found: rows.filter(row => row.id !== null),
  }
}

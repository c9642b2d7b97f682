import { QUERY_CANCELED, sqlState, type Queryable } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import { toMatch } from './event-conditions.ts'
import { isCoveredByIndex, resolveFilters, type ResolvedFilters } from './resolved-filters.ts'
import { parseListCursor, toListCursor, type Direction, type LogPosition } from './seq-ranges.ts'
import { splitEventTexts, toEventJson, toEventSeq, type EventTexts } from './event-json.ts'
import { isPlain, readPlainBatch } from './plain-batch.ts'
import { addQuestion } from './question.ts'
import { hasLatestOnly, type SearchFilters } from './search-filters.ts'
import type { Neighbours } from './search-schema.ts'
import {
  readVisited,
  toCandidates,
  scanLog,
  type ScanLimits,
  type BatchResult,
  type ScanBatch,
  type VisitedCandidates,
} from './log-scan.ts'

/** The start of a page of a list, and its number of events. */
export interface PageQuery {
  cursor?: string
  /** Reads forward, from the event after this seq. */
  after?: number
  /** With `all`, a page has every event of a thread. */
  threads?: 'latest' | 'all'
  /** Only the events of this thread. */
  threadSeq?: number
  limit?: number
}

const MIN_FIRST_BATCH = 256
/** A page ends after the event with which its texts reach this size. */
const MAX_PAGE_BYTES = 1024 * 1024

/** Returns the JSON of one event. Throws `not_found`. */
export async function getEventJson(sql: Queryable, projectId: string, id: string): Promise<string> {
  const json = await findEventJson(sql, projectId, id)
  if (json === undefined) throw new Fault('not_found', 'No event has this id')
  return json
}

/** Returns the JSON of one event with the question that it asks. Throws `not_found`. */
export async function getEventDetail(sql: Queryable, projectId: string, id: string) {
  return addQuestion(sql, { projectId, id }, await getEventJson(sql, projectId, id))
}

/** Returns the JSON of one event; undefined when it does not exist or is deleted. */
export async function findEventJson(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<string | undefined> {
  const uuid = parseId('evt', id)
  if (!uuid) return undefined
  const [row] = await sql<[{ text: string | null }]>`
    select find_event(${projectId}, ${uuid}) as text
  `
  return row.text === null ? undefined : toEventJson(row.text)
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
 * Returns the JSON of a page of events, newest first, or in the order of the log with `after`. A
 * page can be short when events are large, and short or empty when matches are rare. Its
 * `nextCursor` continues from there. It is null only at the end of the log. An event that is too
 * dear to examine is in the page with `isUnexamined`. With filters that `hasLatestOnly`, a thread
 * has only its latest event in the list, without `after`, `threadSeq` and `threads: 'all'`.
 */
export async function listEventsJson(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  { cursor, after, threads, threadSeq, limit = 50 }: PageQuery,
  limits: ScanLimits = {},
): Promise<string> {
  const start: LogPosition | undefined =
    parseListCursor(cursor) ??
    (after === undefined ? undefined : { direction: 'newer', seq: BigInt(after) })
  const direction = start?.direction ?? 'older'
  const isAll = threads === 'all' || threadSeq !== undefined
  const isLatest = !isAll && direction === 'older' && hasLatestOnly(filters)
  const wanted = limit + 1
  const texts: string[] = []
  const unexamined = new Set<string>()
  let bytes = 0
  /** Returns true if the page has enough events or bytes. */
  const add = (found: EventTexts): boolean => {
    texts.push(...found.texts)
    bytes += found.bytes
    return texts.length === wanted || bytes >= MAX_PAGE_BYTES
  }
  const toPage = (stopped?: bigint): string =>
    toPageJson(texts, { unexamined, limit, direction, stopped, isFull: bytes >= MAX_PAGE_BYTES })

  let from = start?.seq
  let options = { direction, wanted, firstBatch: Math.max(4 * limit, MIN_FIRST_BATCH), ...limits }
  const size = Math.min(options.firstBatch, limits.candidatesBeforeIndex ?? Infinity)
  if (size > 0 && !isAll && isPlain(filters)) {
    const plain = { direction, from, size, wanted, maxBytes: MAX_PAGE_BYTES }
    const batch = await readPlainBatch(sql, projectId, filters, plain).catch((error: unknown) => {
      if (sqlState(error) !== QUERY_CANCELED) throw error
      options = { ...options, firstBatch: Math.ceil(size / 16) }
    })
    if (batch) {
      if (add(batch) || batch.stopped === undefined) return toPage()
      from = batch.stopped
      options = { candidatesBeforeIndex: size, ...options }
    }
  }

  const terms = await resolveFilters(sql, projectId, filters)
  if (!terms) return toPage()
  const resolved = { ...terms, threadSeq }
  if (isCoveredByIndex(resolved)) options = { ...options, firstBatch: limits.firstBatch ?? wanted }
  const pass = async (batch: ScanBatch) => {
    const one = { ...batch, limit: 1, maxBytes: MAX_PAGE_BYTES, isExamined: false, isLatest }
    const { found, ...visited } = await readBatch(sql, projectId, resolved, one)
    for (const text of found.texts) unexamined.add(text)
    return { ...visited, isDone: add(found) }
  }
  const stopped = await scanLog(resolved, { ...options, from, pass }, async batch => {
    const { found, ...visited } = await readBatch(sql, projectId, resolved, {
      ...batch,
      limit: wanted - texts.length,
      maxBytes: MAX_PAGE_BYTES - bytes,
      isExamined: true,
      isLatest,
    })
    return { ...visited, isDone: add(found) }
  })
  return toPage(stopped)
}

/**
 * Returns a page of the first `limit` texts. The last text of a full page begins the next one, so
 * that a cursor always leads to an event. If there are no more texts, the next page continues after
 * `stopped`.
 */
function toPageJson(
  texts: string[],
  {
    unexamined,
    limit,
    direction,
    stopped,
    isFull,
  }: {
    unexamined: ReadonlySet<string>
    limit: number
    direction: Direction
    stopped: bigint | undefined
    isFull: boolean
  },
): string {
  const page = texts.slice(0, isFull ? Math.min(limit, texts.length - 1) : limit)
  const last = texts.length > page.length ? page.at(-1) : undefined
  const seq = last === undefined ? stopped : toEventSeq(last)
  const nextCursor = seq === undefined ? null : toListCursor({ direction, seq })
  const items = page.map(text => {
    const json = toEventJson(text)
    return unexamined.has(text) ? `${json.slice(0, -1)},"isUnexamined":true}` : json
  })
  return `{"items":[${items.join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

/** Returns the JSON of a page as `listEventsJson` does, with `completeAfter` at its end. */
export async function listLogJson(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  query: PageQuery,
): Promise<string> {
  const page = await listEventsJson(sql, projectId, filters, query)
  // After the page, so that no event leaves the log unnoticed in between.
  const [row] = await sql<{ expired_seq: string }[]>`
    select expired_seq from event_logs where project_id = ${projectId}
  `
  return `${page.slice(0, -1)},"completeAfter":${row?.expired_seq ?? '0'}}`
}

/**
 * The events to read of a batch: those that match, or if it is not examined, all of them; with
 * `isLatest`, only the latest one of each thread.
 */
interface ReadBatch extends ScanBatch {
  limit: number
  maxBytes: number
  isExamined: boolean
  isLatest: boolean
}

/** Reads the texts of the events of a batch, and how far its candidates reach. */
async function readBatch(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedFilters,
  { limit, maxBytes, isExamined, isLatest, ...batch }: ReadBatch,
): Promise<Omit<BatchResult, 'isDone'> & { found: EventTexts }> {
  const order = batch.direction === 'older' ? sql`desc` : sql`asc`
  const last = batch.direction === 'older' ? sql`min` : sql`max`
  const [row] = await sql<[VisitedCandidates & { texts: string | null }]>`
    with candidates as materialized (
      ${toCandidates(sql, projectId, resolved, batch)}
    )
    select
      (select count(*)::int from candidates) as candidates,
      (select ${last}(seq) from candidates) as last_seq,
      texts_of_events(${projectId}, array(
        select candidates.seq
        -- Up to Postgres 16, the order of a common table expression is unknown to its readers.
        from (select c.seq from candidates c order by c.seq ${order}) candidates
          cross join lateral (
            ${toMatch(sql, projectId, isExamined ? resolved : undefined, isLatest ? sql`e.thread_seq` : sql``)}
          ) e
        ${
          isLatest
            ? sql`where e.thread_seq is null or candidates.seq = (
                select t.last_seq
                from threads t
                where t.project_id = ${projectId} and t.thread_seq between e.thread_seq and e.thread_seq
                order by t.thread_seq
                limit 1
              )`
            : sql``
        }
        order by candidates.seq ${order}
        limit ${limit}
      ), ${maxBytes}) as texts
  `
  return { ...readVisited([row]), found: splitEventTexts(row.texts) }
}

import { toArray, alignRows } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { parseId, toId } from '../ids.ts'
import { isExact, resolve, toConditions, type Criteria } from './criteria.ts'
import { parsePosition, toPositionCursor, type Position } from './ranges.ts'
import { toEventJson, type EventRow } from './event-json.ts'
import type { Filters } from './search.ts'
import type { Neighbours } from './search-schema.ts'
import { toCandidates, walk, type Patience, type Visited, type Window } from './walk.ts'

/** Where a list begins, and how many events a page has. */
export interface PageQuery {
  cursor?: string
  /** Reads forward from the event after this seq. */
  after?: number
  limit?: number
}

/** The JSON of one event. Throws `not_found`. */
export async function getEventJson(sql: Queryable, projectId: string, id: string): Promise<string> {
  const json = await findEventJson(sql, projectId, id)
  if (json === undefined) throw new Fault('not_found', 'No event has this id')
  return json
}

/** The JSON of one event; undefined when there is none, or it is deleted. */
export async function findEventJson(
  sql: Queryable,
  projectId: string,
  id: string,
): Promise<string | undefined> {
  const uuid = parseId('evt', id)
  const [row] = uuid
    ? await sql<EventRow[]>`
        select ${columns(sql)}
        from events e
          ${joins(sql)}
        where e.project_id = ${projectId} and e.id = ${uuid} and e.deleted_at is null
      `
    : []
  return row && toEventJson(row)
}

/** The JSON of several events, in the same order; ids are uuids. */
export async function findEventsJson(
  sql: Queryable,
  wanted: readonly { projectId: string; eventId: string }[],
): Promise<(string | undefined)[]> {
  const rows = await sql<(EventRow & { ord: number })[]>`
    select
      w.ord::int as ord, e.id, e.seq, e.channel_public_id, e.channel_name, e.user_id, e.occurred_at, e.created_at,
      e.title, e.description, e.icon, e.tags, e.metadata, e.source, e.notify
    from unnest(
        ${toArray(wanted.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(wanted.map(({ eventId }) => eventId))}::uuid[]
      ) with ordinality as w (project_id, id, ord)
      cross join lateral (
        select ${columns(sql)}
        from events e
          ${joins(sql)}
        where e.project_id = w.project_id and e.id = w.id and e.deleted_at is null
        -- Keeps this a look-up for each event.
        offset 0
      ) e
  `
  return alignRows(rows, wanted.length).map(row => row && toEventJson(row))
}

/** The events before and after a seq, without filters. */
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
 * The JSON of a page of events, newest first, or in the order of the log with `after`. A page with rare matches can end
 * early, even empty. Its `nextCursor` continues there, and is null only at the end.
 */
export async function listEventsJson(
  sql: Queryable,
  projectId: string,
  filters: Filters,
  { cursor, after, limit = 50 }: PageQuery,
  patience: Patience = {},
): Promise<string> {
  const start: Position | undefined =
    parsePosition(cursor) ??
    (after === undefined ? undefined : { direction: 'newer', seq: BigInt(after) })
  const direction = start?.direction ?? 'older'
  const criteria = await resolve(sql, projectId, filters)
  if (!criteria) return '{"items":[],"nextCursor":null}'
  const rows: EventRow[] = []
  const firstWindow = isExact(criteria) ? limit + 1 : Math.max(4 * limit, 256)
  const options = { direction, from: start?.seq, wanted: limit + 1, firstWindow, ...patience }
  const stopped = await walk(criteria, options, async window => {
    const { found, ...visited } = await readWindow(sql, projectId, criteria, {
      ...window,
      limit: limit + 1 - rows.length,
    })
    rows.push(...found)
    return { ...visited, isDone: rows.length > limit }
  })
  const page = rows.slice(0, limit)
  const goesOn = rows.length > limit ? BigInt(page.at(-1)?.seq ?? 0) : stopped
  const nextCursor = goesOn === undefined ? null : toPositionCursor({ direction, seq: goesOn })
  return `{"items":[${page.map(toEventJson).join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

type WindowRow = { candidates: number; reached: string | null } & (EventRow | { id: null })

/** The matching events of a window, and how far its candidates reach. */
async function readWindow(
  sql: Queryable,
  projectId: string,
  criteria: Criteria,
  { limit, ...window }: Window & { limit: number },
): Promise<Omit<Visited, 'isDone'> & { found: EventRow[] }> {
  const order = window.direction === 'older' ? sql`desc` : sql`asc`
  const rows = await sql<WindowRow[]>`
    with candidates as materialized (
      ${toCandidates(sql, projectId, criteria, window)}
    ), met as materialized (
      select ${stored(sql)}
      from candidates
        cross join lateral (
          select ${stored(sql)}
          from events e
          where e.project_id = ${projectId} and e.seq = candidates.seq
            and ${toConditions(sql, criteria)}
          -- Keeps this a look-up by the primary key for each candidate.
          offset 0
        ) e
      order by candidates.seq ${order}
      limit ${limit}
    ), seen as (
      select count(*)::int as candidates, ${window.direction === 'older' ? sql`min` : sql`max`}(seq) as reached
      from candidates
    )
    select seen.candidates, seen.reached, ${columns(sql)}
    from seen
      left join met e on true
      ${joins(sql)}
    order by e.seq ${order}
  `
  const [{ candidates, reached } = { candidates: 0, reached: null }] = rows
  return {
    candidates,
    reached: reached === null ? undefined : BigInt(reached),
    found: rows.filter(row => row.id !== null),
  }
}

/** The columns of an event `e` that its JSON needs. */
function stored(sql: Queryable): Fragment {
  return sql`
    e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
    e.tags, e.metadata, e.source, e.notify
  `
}

function columns(sql: Queryable): Fragment {
  return sql`
    e.id, e.seq, c.public_id as channel_public_id, c.name as channel_name,
    coalesce(u.user_id, a.user_id, e.user_ref) as user_id,
    e.occurred_at, e.created_at, e.title, e.description, e.icon, to_json(e.tags)::text as tags,
    e.metadata::text as metadata, e.source, e.notify
  `
}

/** Lateral joins keep one look-up for each event, whatever the sizes of the tables. */
function joins(sql: Queryable): Fragment {
  return sql`
    left join lateral (
      select c.public_id, c.name
      from channels c where c.project_id = e.project_id and c.id = e.channel_id limit 1
    ) c on true
    left join lateral (
      select u.user_id
      from identities u where u.project_id = e.project_id and u.user_id = e.user_ref limit 1
    ) u on true
    left join lateral (
      select a.user_id
      from aliases a where a.project_id = e.project_id and a.alias = e.user_ref limit 1
    ) a on true
  `
}

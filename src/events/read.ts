import { toSlug } from '../channels/name.ts'
import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { invalidField } from '../http/validation.ts'
import { parseId, toId } from '../ids.ts'
import { listReferences } from '../identities/users.ts'
import { parseCursor, toCursor, type Position } from './cursor.ts'
import type { EventQuery } from './schema.ts'
import { parseTimestamp } from './timestamp.ts'
import { toTextQuery } from './text-query.ts'

interface Row {
  id: string
  seq: string
  channel_public_id: string
  channel_name: string
  user_id: string | null
  occurred_at: Date
  created_at: Date
  title: string
  description: string | null
  icon: string | null
  tags: string
  metadata: string
  source: string
  notify: boolean
}

/** The JSON of one event. Throws `not_found`. */
export async function getEventJson(sql: Queryable, projectId: string, id: string): Promise<string> {
  const uuid = parseId('evt', id)
  const rows = uuid ? await selectEvents(sql, projectId, sql`and e.id = ${uuid}`, sql`limit 1`) : []
  if (!rows[0]) throw new Fault('not_found', 'No event has this id')
  return toEventJson(rows[0])
}

/** The JSON of a page of events: newest first, or from `after` on in the order of the log. */
export async function listEventsJson(
  sql: Queryable,
  projectId: string,
  query: EventQuery,
): Promise<string> {
  const position = toPosition(query)
  const limit = query.limit ?? 50
  const isNewer = position?.direction === 'newer'
  const references =
    query.userId === undefined ? undefined : await listReferences(sql, projectId, query.userId)
  const rows = await selectEvents(
    sql,
    projectId,
    sql`${toFilters(sql, projectId, query, references)} ${toBound(sql, position)}`,
    sql`order by e.seq ${isNewer ? sql`asc` : sql`desc`} limit ${limit + 1}`,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const nextCursor =
    rows.length > limit && last
      ? toCursor({ direction: isNewer ? 'newer' : 'older', seq: BigInt(last.seq) })
      : null
  return `{"items":[${page.map(toEventJson).join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

function toPosition({ cursor, after }: EventQuery): Position | undefined {
  if (cursor !== undefined) {
    const position = parseCursor(cursor)
    if (!position)
      throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
    return position
  }
  return after === undefined ? undefined : { direction: 'newer', seq: BigInt(after) }
}

function toBound(sql: Queryable, position: Position | undefined): Fragment {
  if (!position) return sql``
  const seq = String(position.seq)
  return position.direction === 'newer' ? sql`and e.seq > ${seq}` : sql`and e.seq < ${seq}`
}

/** The conditions of a query; `references` are all names of its user. */
function toFilters(
  sql: Queryable,
  projectId: string,
  { channel, tag, source, text, from, to }: EventQuery,
  references: string[] | undefined,
): Fragment {
  return sql`
    ${
      channel === undefined
        ? sql``
        : // One channel, so that its index gives the order, too. An id wins over a name that looks like it.
          sql`and e.channel_id = coalesce(
            (
              select c.id from channels c
              where c.project_id = ${projectId} and c.id = ${parseId('chn', channel) ?? null}
            ),
            (select c.id from channels c where c.project_id = ${projectId} and c.slug = ${toSlug(channel)})
          )`
    }
    ${tag === undefined ? sql`` : sql`and e.tags @> ${toArray([tag])}::text[]`}
    ${references ? sql`and e.user_ref = any(${toArray(references)}::text[])` : sql``}
    ${source === undefined ? sql`` : sql`and e.source = ${source}`}
    ${
      text === undefined
        ? sql``
        : sql`and to_tsvector('simple', e.title || ' ' || coalesce(e.description, ''))
            @@ to_tsquery('simple', ${toTextQuery(text)})`
    }
    ${from === undefined ? sql`` : sql`and e.occurred_at >= ${toDate(from)}`}
    ${to === undefined ? sql`` : sql`and e.occurred_at <= ${toDate(to)}`}
  `
}

function toDate(text: string): Date {
  return new Date(parseTimestamp(text) ?? NaN)
}

async function selectEvents(
  sql: Queryable,
  projectId: string,
  where: Fragment,
  tail: Fragment,
): Promise<Row[]> {
  return await sql<Row[]>`
    select
      e.id, e.seq, c.public_id as channel_public_id, c.name as channel_name,
      coalesce(u.user_id, a.user_id, e.user_ref) as user_id,
      e.occurred_at, e.created_at, e.title, e.description, e.icon, to_json(e.tags)::text as tags,
      e.metadata::text as metadata, e.source, e.notify
    from events e
      join channels c on c.project_id = e.project_id and c.id = e.channel_id
      left join identities u on u.project_id = e.project_id and u.user_id = e.user_ref
      left join aliases a on a.project_id = e.project_id and a.alias = e.user_ref
    where e.project_id = ${projectId} ${where}
    ${tail}
  `
}

/** The same fields in the same order as in the answer to its creation (draft.ts). */
function toEventJson(row: Row): string {
  return (
    `{"id":"${toId('evt', row.id)}","seq":${row.seq},"channelId":"${row.channel_public_id}"` +
    `,"channelName":${JSON.stringify(row.channel_name)},"userId":${JSON.stringify(row.user_id)}` +
    `,"timestamp":"${row.occurred_at.toISOString()}","createdAt":"${row.created_at.toISOString()}"` +
    `,"title":${JSON.stringify(row.title)},"description":${JSON.stringify(row.description)}` +
    `,"icon":${JSON.stringify(row.icon)},"tags":${row.tags},"metadata":${row.metadata}` +
    `,"source":${JSON.stringify(row.source)},"notify":${row.notify}}`
  )
}

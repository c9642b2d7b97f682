import { toArray } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'
import { toPage, toSlice } from '../http/paging.ts'
import type { UserQuery } from './user-schema.ts'
import { noUser, resolveUser } from './users.ts'

const MAX_WORDS = 10

interface ListRow {
  public_id: string
  user_id: string
  properties: string | null
  aliases: string
  created_at: Date
  updated_at: Date
}

/**
 * The JSON of a page of users, newest first: all, or those who have a user_id or an alias that begins like the search,
 * or all of its words in their properties. A search that finds very many is answered from 10,000 of each kind.
 */
export async function listUsersJson(
  sql: Queryable,
  projectId: string,
  { search = '', ...query }: UserQuery,
): Promise<string> {
  const { after, rows: limit } = toSlice('idn', query)
  const words = search.split(/\s+/).filter(word => word !== '')
  const rows = await sql<ListRow[]>`
    with page as materialized (
      ${
        words.length === 0
          ? sql`
            select i.id
            from identities i
            where i.project_id = ${projectId} ${after ? sql`and i.id < ${after}` : sql``}
            order by i.id desc
            limit ${limit}
          `
          : sql`
            select f.id
            from find_users(
              ${projectId}, lower(${toPrefixPattern(search.trim())}),
              ${toArray(words.slice(0, MAX_WORDS))}::text[], ${after ?? null}, ${limit}
            ) as f (id)
          `
      }
    )
    select
      i.public_id, i.user_id,
      case when octet_length(i.properties::text) <= 4096 then i.properties::text end as properties,
      (
        select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
        from (
          select a.alias, a.created_at
          from aliases a
          where a.project_id = i.project_id and a.user_id = i.user_id
          order by a.created_at, a.alias
          limit 10
        ) a
      ) as aliases,
      i.created_at, i.updated_at
    from page p
      join identities i on i.project_id = ${projectId} and i.id = p.id
    order by i.id desc
  `
  const { items, nextCursor } = toPage(rows, query, row => row.public_id)
  return `{"items":[${items.map(toListJson).join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

interface DetailRow {
  user_id: string
  public_id: string | null
  properties: string | null
  aliases: string
  created_at: Date | null
  updated_at: Date | null
  events: number
  first_at: Date | null
  last_at: Date | null
  channels: string
}

/**
 * The JSON of all about the user whom `reference` names, by user_id or else by alias; somebody whom only events name
 * counts. Throws `not_found` when nothing does.
 */
export async function getUserDetailJson(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string> {
  const [row] = await sql<[DetailRow]>`
    with named as materialized (
      select coalesce(${resolveUser(sql, projectId, reference)}, ${reference}) as user_id
    )
    select
      n.user_id, i.public_id, i.properties::text as properties, i.created_at, i.updated_at,
      (
        select coalesce(
          json_agg(
            json_build_object(
              'alias', a.alias,
              'since', to_char(a.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
            )
            order by a.created_at, a.alias
          ),
          '[]'
        )::text
        from (
          select a.alias, a.created_at
          from aliases a
          where a.project_id = ${projectId} and a.user_id = n.user_id
          order by a.created_at, a.alias
          limit 1000
        ) a
      ) as aliases,
      s.events, s.first_at, s.last_at, s.channels
    from named n
      left join identities i on i.project_id = ${projectId} and i.user_id = n.user_id
      cross join lateral user_activity(${projectId}, n.user_id) s
  `
  if (row.public_id === null && row.events === 0) throw noUser()
  return (
    `{"id":${JSON.stringify(row.public_id)},"userId":${JSON.stringify(row.user_id)}` +
    `,"properties":${row.properties},"aliases":${row.aliases}` +
    `,"createdAt":${JSON.stringify(row.created_at)},"updatedAt":${JSON.stringify(row.updated_at)}` +
    `,"events":${row.events},"firstSeenAt":${JSON.stringify(row.first_at)}` +
    `,"lastSeenAt":${JSON.stringify(row.last_at)},"channels":${row.channels}}`
  )
}

function toListJson(row: ListRow): string {
  return (
    `{"id":"${row.public_id}","userId":${JSON.stringify(row.user_id)},"properties":${row.properties}` +
    `,"aliases":${row.aliases},"createdAt":"${row.created_at.toISOString()}"` +
    `,"updatedAt":"${row.updated_at.toISOString()}"}`
  )
}

/** What `like` takes for everything that begins with `text`. */
function toPrefixPattern(text: string): string {
  return `${text.replace(/[\\%_]/g, '\\$&')}%`
}

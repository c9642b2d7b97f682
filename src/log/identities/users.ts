import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { MAX_WORDS, NOTHING_TO_FIND, splitWords } from '../../base/text-search.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import { toPage, parsePageQuery } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import type { UserQuery } from './user-schema.ts'

/** A search ends after this time, and a cursor continues it. Its statement may take longer. */
const SEARCH_MS = 500

/** A user of a project, by the exact user_id. The other ids are uuids. */
export interface UserRef {
  organizationId: string
  projectId: string
  userId: string
}

interface Row {
  public_id: string
  user_id: string
  properties: string | null
  aliases: string
  created_at: Date
  updated_at: Date
}

/**
 * Returns the JSON of a user. `reference` is a user_id or, if none is equal, an alias. Throws
 * `not_found`.
 */
export async function getUserJson(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string> {
  const [row] = await sql<Row[]>`
    select
      i.public_id, i.user_id, i.properties::text as properties,
      (
        select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
        from aliases a
        where a.project_id = i.project_id and a.user_id = i.user_id
      ) as aliases,
      i.created_at, i.updated_at
    from identities i
    where i.project_id = ${projectId} and i.user_id = ${resolveUser(sql, projectId, reference)}
  `
  if (!row) throw userNotFound()
  return toUserJson(row)
}

/**
 * Returns the JSON of a page of users, newest first. A search finds users who have all of its words
 * in the user_id, an alias or the properties. Its page can be short when time is up. Throws
 * `InvalidRequest`.
 */
export async function listUsersJson(
  sql: Queryable,
  projectId: string,
  { search = '', ...query }: UserQuery,
  searchMs = SEARCH_MS,
): Promise<string> {
  const { after, rows: limit } = parsePageQuery('idn', query)
  const found =
    search.trim() === ''
      ? undefined
      : await searchUsers(sql, { projectId, search, before: after, limit, searchMs })
  const rows = await sql<Row[]>`
    with page as materialized (
      ${
        found
          ? sql`select f.id from unnest(${toArray(found.ids)}::uuid[]) as f (id)`
          : sql`
            select i.id
            from identities i
            where i.project_id = ${projectId} ${after ? sql`and i.id < ${after}` : sql``}
            order by i.id desc
            limit ${limit}
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
      cross join lateral (
        select i.*
        from identities i
        where i.project_id = ${projectId} and i.id between p.id and p.id
        order by i.id
        limit 1
      ) i
    order by i.id desc
  `
  const { items, nextCursor } = found
    ? { items: rows, nextCursor: found.last === undefined ? null : toId('idn', found.last) }
    : toPage(rows, query, row => row.public_id)
  return `{"items":[${items.map(toUserJson).join()}],"nextCursor":${JSON.stringify(nextCursor)}}`
}

interface UserSearch {
  projectId: string
  search: string
  before: string | undefined
  /** The number of users, and one more. */
  limit: number
  searchMs: number
}

/**
 * Finds the uuids of a page of users, newest first. `last` is that of the last user that it has
 * examined, if more may follow. Throws `InvalidRequest`.
 */
async function searchUsers(
  sql: Queryable,
  { projectId, search, before, limit, searchMs }: UserSearch,
): Promise<{ ids: string[]; last: string | undefined }> {
  const words = splitWords(search)
  if (words.length > MAX_WORDS)
    throw invalidField('search', 'too_many', `Must have at most ${MAX_WORDS} words`)
  const [found] = await sql<[{ ids: string[]; reached: string | null; is_searchable: boolean }]>`
    select to_json(ids) as ids, reached, is_searchable
    from search_users(
      project => ${projectId},
      words => ${toArray(words)}::text[],
      before => ${before ?? null},
      max_rows => ${limit},
      time_limit_ms => ${searchMs}
    )
  `
  if (!found.is_searchable) throw invalidField('search', 'invalid_format', NOTHING_TO_FIND)
  const ids = found.ids.slice(0, limit - 1)
  return { ids, last: found.reached ?? (found.ids.length > ids.length ? ids.at(-1) : undefined) }
}

/**
 * Returns the JSON of a UserDetail. `reference` is a user_id or an alias. A user known only from
 * events has one, too. Throws `not_found`.
 */
export async function getUserDetailJson(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string> {
  const [row] = await sql<
    [
      Pick<Row, 'user_id' | 'properties' | 'aliases'> & {
        public_id: string | null
        created_at: Date | null
        updated_at: Date | null
        events: number
        first_at: Date | null
        last_at: Date | null
        channels: string
      },
    ]
  >`
    with named as materialized (
      select coalesce(${resolveUser(sql, projectId, reference)}, ${reference}) as user_id
    )
    select
      n.user_id, i.public_id, i.properties::text as properties, i.created_at, i.updated_at,
      (
        select coalesce(
          json_agg(
            json_build_object('alias', a.alias, 'since', to_iso(a.created_at))
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
  if (row.public_id === null && row.events === 0) throw userNotFound()
  return (
    `{"id":${JSON.stringify(row.public_id)},"userId":${JSON.stringify(row.user_id)}` +
    `,"properties":${row.properties},"aliases":${row.aliases}` +
    `,"createdAt":${JSON.stringify(row.created_at)},"updatedAt":${JSON.stringify(row.updated_at)}` +
    `,"events":${row.events},"firstSeenAt":${JSON.stringify(row.first_at)}` +
    `,"lastSeenAt":${JSON.stringify(row.last_at)},"channels":${row.channels}}`
  )
}

function toUserJson(row: Row): string {
  return (
    `{"id":"${row.public_id}","userId":${JSON.stringify(row.user_id)},"properties":${row.properties}` +
    `,"aliases":${row.aliases},"createdAt":"${row.created_at.toISOString()}"` +
    `,"updatedAt":"${row.updated_at.toISOString()}"}`
  )
}

/**
 * The user_id that `reference` names: itself, or the owner of that alias. Null when it is neither.
 * As a subquery it is called once, also where a plan reads many rows.
 */
export function resolveUser(sql: Queryable, projectId: string, reference: string): Fragment {
  return sql`(select user_of_name(${projectId}, ${reference}))`
}

export function userNotFound(): Fault {
  return new Fault('not_found', 'No user has this user_id or alias')
}

/**
 * Lists every name of the user that `reference` names: the user_id and its aliases, or only
 * `reference` itself.
 */
export async function listReferences(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string[]> {
  const [row] = await sql<[{ names: string[] }]>`
    select to_json(
      names_of_user(${projectId}, coalesce(${resolveUser(sql, projectId, reference)}, ${reference}))
    ) as names
  `
  return row.names
}

import { QUERY_CANCELED, sqlState, type Queryable } from '../../database/sql.ts'
import { listUserNames } from '../identities/user-names.ts'
import { listUsersJson } from '../identities/users.ts'
import { InvalidRequest } from '../../http/validation.ts'
import { findClosest } from '../../base/closest.ts'
import { toSlug } from '../channels/name.ts'
import { collectMetadata } from './metadata-values.ts'
import type { Suggestion, SuggestionQuery } from './search-schema.ts'

const MAX_SUGGESTIONS = 10
const MAX_CHANNELS = 1_000
/** How many of the newest events are read for values that no index has. */
const RECENT_EVENTS = 300
/** Metadata that takes more bytes, as stored or as text, is not read for suggestions. */
const MAX_METADATA_BYTES = 4_096
/** How many of the newest parts of the search index are read, and rows of each. */
const RECENT_PARTS = 8
const ROWS_PER_PART = 20

/** The time of a search of users. Reading the found ones fits into the limit of the statement. */
const USERS_MS = 200

/** The first character of a token in the search index. */
const TOKEN_MARKS = { tag: '#', source: '@' }

/** The page for a text that no user can have. */
const NO_USERS = '{"items":[]}'

/** A value, and how often it was found. */
interface Candidate {
  value: string
  label: string | null
  count: number
}

/**
 * Suggests values for a term of a search that begin with a text, the most frequent first. Then come
 * values that contain the text. If there are none, it suggests one of the 200 most frequent ones
 * that is similar to the text. It knows all users, 1,000 channels, and what the newest events have.
 * It suggests nothing if reading takes too long. `sql` is not a transaction.
 */
export async function suggestValues(
  sql: Queryable,
  projectId: string,
  query: SuggestionQuery,
): Promise<Suggestion[]> {
  try {
    return await findSuggestions(sql, projectId, query)
  } catch (error) {
    if (sqlState(error) !== QUERY_CANCELED) throw error
    return []
  }
}

async function findSuggestions(
  sql: Queryable,
  projectId: string,
  { field = 'channel', text = '' }: SuggestionQuery,
): Promise<Suggestion[]> {
  const wanted = text.trim()
  if (field === 'user') {
    const known = await findUsers(sql, projectId, wanted)
    // Names of users can be anywhere in their properties, so each one fits.
    if (known.length > 0) return known.map(toSuggestion)
  }
  const candidates = await listCandidates(sql, projectId, field, wanted)
  const toName = ({ value }: Candidate) => value.toLowerCase()
  const lower = wanted.toLowerCase()
  const found = candidates
    .filter(one => toName(one).includes(lower))
    .toSorted(
      (a, b) =>
        Number(toName(b).startsWith(lower)) - Number(toName(a).startsWith(lower)) ||
        b.count - a.count,
    )
  if (found.length > 0) return found.slice(0, MAX_SUGGESTIONS).map(toSuggestion)
  const similar = findClosest(
    wanted,
    candidates.toSorted((a, b) => b.count - a.count).map(({ value }) => value),
  )
  return candidates.filter(({ value }) => value === similar).map(toSuggestion)
}

function toSuggestion({ value, label }: Candidate): Suggestion {
  return { value, label }
}

async function listCandidates(
  sql: Queryable,
  projectId: string,
  field: NonNullable<SuggestionQuery['field']>,
  wanted: string,
): Promise<Candidate[]> {
  if (field === 'channel') return listChannels(sql, projectId)
  const recent = await listRecent(sql, projectId, field)
  if (field === 'meta') return collectMetadata(recent, wanted).map(toCandidate)
  const counts = new Map<string, number>()
  const add = (value: string, count: number) => {
    if (value !== '') counts.set(value, (counts.get(value) ?? 0) + count)
  }
  for (const value of recent) add(value, 1)
  if (field !== 'user') {
    const mark = TOKEN_MARKS[field]
    for (const { value, count } of await listTokens(sql, projectId, mark, wanted)) add(value, count)
  }
  return [...counts].map(([value, count]) => toCandidate({ value, count }))
}

function toCandidate(one: { value: string; count: number }): Candidate {
  return { ...one, label: null }
}

async function findUsers(sql: Queryable, projectId: string, search: string): Promise<Candidate[]> {
  const query = { search, limit: MAX_SUGGESTIONS }
  const page = await listUsersJson(sql, projectId, query, USERS_MS).catch((error: unknown) => {
    if (error instanceof InvalidRequest) return NO_USERS
    throw error
  })
  // listUsersJson writes this shape.
  const { items } = JSON.parse(page) as { items: { userId: string }[] }
  const userIds = items.map(({ userId }) => userId)
  const users = await listUserNames(sql, projectId, userIds)
  const names = new Map(users.map(({ userId, name }) => [userId, name]))
  return userIds.map(value => ({ value, label: names.get(value) ?? null, count: 0 }))
}

async function listChannels(sql: Queryable, projectId: string): Promise<Candidate[]> {
  const rows = await sql<{ name: string; slug: string }[]>`
    select name, slug
    from channels
    where project_id = ${projectId} and not is_archived
    order by id desc
    limit ${MAX_CHANNELS}
  `
  const slugs = new Set(rows.map(({ slug }) => slug))
  return rows.map(({ name, slug }) => {
    // The new name of a channel can be the first name of another one, which takes precedence.
    const isOfOther = toSlug(name) !== slug && slugs.has(toSlug(name))
    return { value: isOfOther ? slug : name, label: isOfOther ? name : null, count: 0 }
  })
}

/**
 * Lists tags or sources of the newest parts of the search index, which lacks the newest events.
 * `mark` is the first character of their tokens.
 */
async function listTokens(
  sql: Queryable,
  projectId: string,
  mark: string,
  wanted: string,
): Promise<{ value: string; count: number }[]> {
  return await sql<{ value: string; count: number }[]>`
    with parts as materialized (
      select p.first_seq
      from search_parts p
      where p.project_id = ${projectId}
      order by p.first_seq desc
      limit ${RECENT_PARTS}
    ), indexed as materialized (
      select t.tokens, t.counts, t.first_token, t.bits
      from parts p
        -- Tokens are compared exactly, so all of them are read for one in another case.
        cross join (values (${mark + wanted}), (${mark})) as w (low)
        cross join lateral (
          (
            select t.tokens, t.counts, t.first_token, t.bits
            from event_tokens t
            where t.project_id = ${projectId} and t.first_seq = p.first_seq and t.first_token <= w.low
            order by t.first_token desc
            limit 1
          )
          union all
          (
            select t.tokens, t.counts, t.first_token, t.bits
            from event_tokens t
            where t.project_id = ${projectId} and t.first_seq = p.first_seq and t.first_token > w.low
              and t.first_token < ${mark}::text || chr(1114111)
            order by t.first_token
            limit ${ROWS_PER_PART}
          )
        ) t
    )
    select substr(t.token, 2) as value, sum(t.count)::float8 as count
    from indexed i
      cross join lateral (
        select u.token, u.count from unnest(i.tokens, i.counts) as u (token, count) where i.bits is null
        union all
        select i.first_token, bit_count(i.bits)::int where i.bits is not null
      ) t
    where t.token like ${mark}::text || '%'
    group by t.token
    order by 2 desc, 1
    limit 1000
  `
}

/** Lists the values of a field that the newest events have; for `meta` the JSON of metadata. */
async function listRecent(
  sql: Queryable,
  projectId: string,
  field: 'tag' | 'source' | 'user' | 'meta',
): Promise<string[]> {
  const values = {
    tag: sql`unnest(e.tags)`,
    source: sql`e.source`,
    user: sql`e.user_ref`,
    // Only the text of small values is read: a large one would have to be decompressed.
    meta: sql`case when pg_column_size(e.metadata) <= ${MAX_METADATA_BYTES} then e.metadata::text end`,
  }
  const rows = await sql<{ value: string }[]>`
    select v.value
    from (
      select e.tags, e.source, e.user_ref, e.metadata
      from events e
      where e.project_id = ${projectId} and e.deleted_at is null
      order by e.seq desc
      limit ${RECENT_EVENTS}
    ) e
      cross join lateral (select ${values[field]} as value offset 0) v
    where v.value is not null and octet_length(v.value) <= ${MAX_METADATA_BYTES}
  `
  return rows.map(({ value }) => value)
}

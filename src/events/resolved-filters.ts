import { toSlug } from '../channels/name.ts'
import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import { parseId } from '../ids.ts'
import { listReferences } from '../identities/users.ts'
import { listSeqRanges, type SeqRange } from './seq-ranges.ts'
import {
  splitMetadata,
  toTextQuery,
  type ValueFilter,
  type SearchFilters,
  type HasField,
} from './search-query.ts'

const NUMBER = /^-?\d{1,100}(\.\d{1,100})?(e[+-]?\d{1,4})?$/i

/** Search filters as database values. An undefined list does not filter. */
export interface ResolvedFilters {
  channelIds: string[] | undefined
  withoutChannelIds: string[]
  /** Every user_id and alias of the users that match. */
  references: string[] | undefined
  withoutReferences: string[]
  sources: ValueFilter
  tags: ValueFilter
  metadata: ValueFilter
  has: ValueFilter<HasField>
  textQuery: string
  /** Each is a prefix of at least one word in every match. */
  lexemes: string[]
  afterMs: number | null
  beforeMs: number | null
  /** The parts of the log that can contain matches, in the order of seq. */
  ranges: SeqRange[]
}

/** Looks up the channels, users and words of filters. Returns undefined when no event can match. */
export async function resolveFilters(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
): Promise<ResolvedFilters | undefined> {
  const { channels, users, words, phrases, sources, tags, after, before } = filters
  const hasText = words.is.length + phrases.is.length > 0
  const ranges = await listSeqRanges(sql, projectId, {
    afterMs: after,
    beforeMs: before,
    // The search index reads every bucket of a range, including empty ones.
    endsAtHead: hasText || sources.is.length + tags.is.length > 0,
  })
  const channelIds = await listChannelIds(sql, projectId, channels.is)
  const textQuery = toTextQuery(words, phrases)
  const text = await parseText(sql, textQuery, [...words.is, ...phrases.is])
  if (ranges.length === 0 || channelIds?.length === 0 || (hasText && text.isEmpty)) return undefined
  return {
    channelIds,
    withoutChannelIds: (await listChannelIds(sql, projectId, channels.not)) ?? [],
    references: await listAllReferences(sql, projectId, users.is),
    withoutReferences: (await listAllReferences(sql, projectId, users.not)) ?? [],
    sources,
    tags,
    metadata: filters.metadata,
    has: filters.has,
    textQuery: text.isEmpty ? '' : textQuery,
    lexemes: text.lexemes,
    afterMs: after,
    beforeMs: before,
    ranges,
  }
}

/** The SQL condition that an event `e` matches all filters. It excludes deleted events. */
export function toConditions(sql: Queryable, resolved: ResolvedFilters): Fragment {
  const { channelIds, withoutChannelIds, references, withoutReferences } = resolved
  const { sources, tags, metadata, has, textQuery } = resolved
  const each = <Value>(values: Value[], toFragment: (value: Value) => Fragment) =>
    values.reduce((all, value) => sql`${all} and ${toFragment(value)}`, sql``)
  const some = (values: string[], toFragment: (list: string) => Fragment) =>
    values.length > 0 ? toFragment(toArray(values)) : sql``
  return sql`
    e.deleted_at is null
    ${some(channelIds ?? [], list => sql`and e.channel_id = any(${list}::uuid[])`)}
    ${some(withoutChannelIds, list => sql`and e.channel_id <> all(${list}::uuid[])`)}
    ${some(references ?? [], list => sql`and e.user_ref = any(${list}::text[])`)}
    ${some(
      withoutReferences,
      list => sql`and (e.user_ref is null or e.user_ref <> all(${list}::text[]))`,
    )}
    ${some(sources.is, list => sql`and e.source = any(${list}::text[])`)}
    ${some(sources.not, list => sql`and e.source <> all(${list}::text[])`)}
    ${some(tags.is, list => sql`and e.tags @> ${list}::text[]`)}
    ${some(tags.not, list => sql`and not e.tags && ${list}::text[]`)}
    ${each(metadata.is, one => toEquals(sql, one))}
    ${each(metadata.not, one => sql`${toEquals(sql, one)} is not true`)}
    ${each(has.is, one => toHas(sql, one))}
    ${each(has.not, one => sql`not ${toHas(sql, one)}`)}
    ${
      textQuery === ''
        ? sql``
        : sql`and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', ${textQuery}))`
    }
    ${toTimeConditions(sql, resolved)}
  `
}

/**
 * The SQL conditions on the time of an event `e`. `is true` keeps a planner without statistics from
 * reading each candidate through the index of time.
 */
export function toTimeConditions(
  sql: Queryable,
  { afterMs, beforeMs }: Pick<ResolvedFilters, 'afterMs' | 'beforeMs'>,
): Fragment {
  return sql`
    ${afterMs === null ? sql`` : sql`and (e.occurred_at >= ${toDate(afterMs)}) is true`}
    ${beforeMs === null ? sql`` : sql`and (e.occurred_at < ${toDate(beforeMs)}) is true`}
  `
}

/**
 * Returns true if the index of channels or users alone decides a match: every candidate from it
 * matches, unless the event is deleted.
 */
export function isCoveredByIndex({
  channelIds,
  references,
  tags,
  sources,
  metadata,
  has,
  ...rest
}: ResolvedFilters): boolean {
  const lists = [rest.withoutChannelIds, rest.withoutReferences, rest.lexemes]
  const choices = [tags, sources, metadata, has].flatMap(choice => [choice.is, choice.not])
  return (
    !(channelIds && references) &&
    [...lists, ...choices].every(list => list.length === 0) &&
    rest.textQuery === '' &&
    rest.afterMs === null &&
    rest.beforeMs === null
  )
}

/**
 * The condition that the metadata has this value at its path. Numbers are compared by value, so
 * `1.10` equals `1.1`. The condition is null when the metadata has no such path.
 */
function toEquals(sql: Queryable, text: string): Fragment {
  const { path, value } = splitMetadata(text) ?? { path: [], value: '' }
  const found = sql`e.metadata #>> ${toArray(path)}::text[]`
  if (!NUMBER.test(value)) return sql`${found} = ${value}`
  // Very long numbers are out of range for `numeric`.
  return sql`
    (${found} = ${value} or case
      when json_typeof(e.metadata #> ${toArray(path)}::text[]) = 'number' and length(${found}) <= 200
        then (${found})::numeric = ${value}::numeric
      else false
    end)
  `
}

function toHas(sql: Queryable, has: HasField): Fragment {
  switch (has) {
    case 'description':
      return sql`coalesce(e.description, '') <> ''`
    case 'metadata':
      return sql`e.metadata::text <> '{}'`
    case 'tags':
      return sql`e.tags <> '{}'`
    case 'user':
      return sql`e.user_ref is not null`
    case 'icon':
      return sql`e.icon is not null`
  }
}

/** Limits the year to 9999: a Date writes later years in a form that Postgres cannot read. */
function toDate(ms: number): Date {
  return new Date(Math.min(ms, Date.parse('9999-12-31T23:59:59.999Z')))
}

/** Returns the uuids of channels by name or id. An id takes precedence over an equal name. */
async function listChannelIds(
  sql: Queryable,
  projectId: string,
  channels: string[],
): Promise<string[] | undefined> {
  if (channels.length === 0) return undefined
  const rows = await sql<{ id: string }[]>`
    select distinct coalesce(by_id.id, by_slug.id) as id
    from unnest(
        ${toArray(channels.map(one => parseId('chn', one)))}::uuid[],
        ${toArray(channels.map(toSlug))}::text[]
      ) as asked (id, slug)
      left join channels by_id on by_id.project_id = ${projectId} and by_id.id = asked.id
      left join channels by_slug on by_slug.project_id = ${projectId} and by_slug.slug = asked.slug
    where by_id.id is not null or by_slug.id is not null
  `
  return rows.map(({ id }) => id)
}

async function listAllReferences(
  sql: Queryable,
  projectId: string,
  users: string[],
): Promise<string[] | undefined> {
  if (users.length === 0) return undefined
  const all = new Set<string>()
  for (const user of users) {
    for (const reference of await listReferences(sql, projectId, user)) all.add(reference)
  }
  return [...all]
}

/**
 * Parses a text query and its words in Postgres. `isEmpty`: the query contains no searchable word.
 */
async function parseText(
  sql: Queryable,
  textQuery: string,
  words: string[],
): Promise<{ isEmpty: boolean; lexemes: string[] }> {
  if (textQuery === '') return { isEmpty: true, lexemes: [] }
  const [row] = await sql<[{ is_empty: boolean; lexemes: string }]>`
    select
      numnode(to_tsquery('simple', ${textQuery})) = 0 as is_empty,
      (
        select coalesce(json_agg(distinct l.lexeme), '[]')::text
        from unnest(${toArray(words)}::text[]) as w (word),
          unnest(tsvector_to_array(to_tsvector('simple', w.word))) as l (lexeme)
      ) as lexemes
  `
  return { isEmpty: row.is_empty, lexemes: JSON.parse(row.lexemes) as string[] }
}

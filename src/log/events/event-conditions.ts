import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import { isNumberText } from '../../http/exact-json.ts'
import { toRank } from '../channels/level.ts'
import type { ResolvedGroup, ResolvedTerms, ResolvedUsers, UserName } from './resolved-filters.ts'
import { listPaths, splitMetadata, type HasField } from './search-filters.ts'
import { STATES, type State } from './state.ts'

/** A name that Postgres reads as a place in an array, and JSON does not. */
const ODD_PLACE = /^\s*([+-]\d+|0\d+|\s\d+)$/

/**
 * The SQL that reads `columns` of the event of a candidate, if the event matches all filters. It
 * goes behind `from candidates cross join lateral`. Only the primary key has the order of `seq`. An
 * equality would let the planner take another index when its statistics miss the project. Each
 * candidate would then read all events of the project.
 */
export function toMatch(
  sql: Queryable,
  projectId: string,
  resolved: ResolvedTerms | undefined,
  columns = sql``,
): Fragment {
  return sql`
    select ${columns}
    from events e
    where e.project_id = ${projectId} and e.seq between candidates.seq and candidates.seq
      and ${toConditions(sql, resolved)}
    order by e.seq
    limit 1
  `
}

/** The SQL condition that an event `e` matches all filters, and is not deleted. */
export function toConditions(sql: Queryable, resolved: ResolvedTerms | undefined): Fragment {
  return sql`e.deleted_at is null ${resolved ? toTerms(sql, resolved) : sql``}`
}

/** The conditions of terms and their groups, each after `and`. */
function toTerms(sql: Queryable, resolved: ResolvedTerms): Fragment {
  const { users, withoutUsers, sources, levels, states, threads, tags } = resolved
  const { metadata, has, groups } = resolved
  const each = <Value>(values: Value[], toFragment: (value: Value) => Fragment) =>
    values.reduce((all, value) => sql`${all} and ${toFragment(value)}`, sql``)
  const toNumber = (state: State) => STATES.indexOf(state)
  const some = (values: (string | number)[], toFragment: (list: string) => Fragment) =>
    values.length > 0 ? toFragment(toArray(values)) : sql``
  return sql`
    ${toChannelConditions(sql, resolved)}
    ${users ? sql`and ${toUser(sql, users)}` : sql``}
    ${
      Object.values(withoutUsers).some(list => list.length > 0)
        ? sql`and ${toUser(sql, withoutUsers)} is not true`
        : sql``
    }
    ${some(sources.is, list => sql`and e.source = any(${list}::text[])`)}
    ${some(sources.not, list => sql`and e.source <> all(${list}::text[])`)}
    ${some(levels.is.map(toRank), list => sql`and coalesce(e.level, 1) = any(${list}::int[])`)}
    ${some(levels.not.map(toRank), list => sql`and coalesce(e.level, 1) <> all(${list}::int[])`)}
    ${some(states.is.map(toNumber), list => sql`and e.state = any(${list}::int[])`)}
    ${some(states.not.map(toNumber), list => sql`and (e.state = any(${list}::int[])) is not true`)}
    ${some(threads.is, list => sql`and e.thread = any(${list}::text[])`)}
    ${some(threads.not, list => sql`and (e.thread = any(${list}::text[])) is not true`)}
    ${some(tags.is, list => sql`and e.tags @> ${list}::text[]`)}
    ${some(tags.not, list => sql`and not e.tags && ${list}::text[]`)}
    ${each(metadata.is, one => toEquals(sql, one))}
    ${each(metadata.not, one => sql`${toEquals(sql, one)} is not true`)}
    ${each(has.is, one => toHas(sql, one))}
    ${each(has.not, one => sql`not ${toHas(sql, one)}`)}
    ${toTimeConditions(sql, resolved)}
    ${toTextConditions(sql, resolved)}
    ${each(groups, group => toAlternatives(sql, group))}
  `
}

/** The conditions on the uuid of a channel, each after `and`. */
export function toChannelConditions(
  sql: Queryable,
  { channelIds, withoutChannelIds }: Pick<ResolvedTerms, 'channelIds' | 'withoutChannelIds'>,
  column = sql`e.channel_id`,
): Fragment {
  return sql`
    ${channelIds ? sql`and ${column} = any(${toArray(channelIds)}::uuid[])` : sql``}
    ${
      withoutChannelIds.length > 0
        ? sql`and ${column} <> all(${toArray(withoutChannelIds)}::uuid[])`
        : sql``
    }
  `
}

function toTextConditions(sql: Queryable, { texts, withoutTexts }: ResolvedTerms): Fragment {
  if (texts.length + withoutTexts.length === 0) return sql``
  return sql`and matches_texts(
    title => e.title,
    description => e.description,
    needles => ${toArray(texts.map(({ needle }) => needle))}::text[],
    wanted => ${toArray(texts.map(({ pattern }) => pattern))}::text[],
    unwanted => ${toArray(withoutTexts.map(({ pattern }) => pattern))}::text[],
    has_symbols => ${[...texts, ...withoutTexts].some(({ hasSymbols }) => hasSymbols)}
  )`
}

function toAlternatives(sql: Queryable, { isExcluded, terms }: ResolvedGroup): Fragment {
  const any = terms.reduce((all, one) => sql`${all} or (true ${toTerms(sql, one)})`, sql`false`)
  return isExcluded ? sql`(${any}) is not true` : sql`(${any})`
}

/** The condition that the event is about one of these users. It is null without a user. */
function toUser(sql: Queryable, { references, beginnings, names }: ResolvedUsers): Fragment {
  const refersTo = (beginning: string) => sql`starts_with(fold_text(e.user_ref), ${beginning})`
  return [...beginnings.map(refersTo), ...names.map(name => hasName(sql, name))].reduce(
    (any, condition) => sql`(${any} or ${condition})`,
    sql`(e.user_ref = any(${toArray(references)}::text[]))`,
  )
}

/** The condition that a name of the event's user is this one, or begins with it. */
function hasName(sql: Queryable, { text, isWhole }: UserName): Fragment {
  const fits = (name: Fragment) =>
    isWhole
      ? sql`fold_text(one_line(${name})) = ${text}`
      : sql`starts_with(fold_text(${name}), ${text})`
  return sql`
    ${fits(sql`e.user_ref`)} or exists (
      select from unnest(all_names_of_user(e.project_id, e.user_ref)) as n (name)
      where ${fits(sql`n.name`)}
    )
  `
}

/**
 * The SQL conditions on the time of an event `e`. `is true` keeps a planner without statistics from
 * reading each candidate through the index of time.
 */
export function toTimeConditions(
  sql: Queryable,
  { afterMs, beforeMs }: Pick<ResolvedTerms, 'afterMs' | 'beforeMs'>,
): Fragment {
  return sql`
    ${afterMs === null ? sql`` : sql`and (e.occurred_at >= ${toDate(afterMs)}) is true`}
    ${beforeMs === null ? sql`` : sql`and (e.occurred_at < ${toDate(beforeMs)}) is true`}
  `
}

/**
 * The condition that the metadata has this value at one of its paths. It is null or false when the
 * metadata has no such path.
 */
function toEquals(sql: Queryable, text: string): Fragment {
  const { path, value } = splitMetadata(text) ?? { path: [], value: '' }
  const all = listPaths(path).map(one => toEqualsAt(sql, one, value))
  return sql`(${all.reduce((any, one) => sql`${any} or ${one}`)})`
}

/**
 * The condition that the metadata has this value at a path. Numbers are compared by value: `1.10`
 * equals `1.1`. It parses the metadata once, because it can have 256 KiB.
 */
function toEqualsAt(sql: Queryable, path: readonly string[], value: string): Fragment {
  const isInObjects = path.flatMap((name, n) =>
    ODD_PLACE.test(name)
      ? [sql`and json_typeof(e.metadata #> ${toArray(path.slice(0, n))}::text[]) = 'object'`]
      : [],
  )
  // Very long numbers are out of range for `numeric`.
  const isEqual = isNumberText(value)
    ? sql`m.text = ${value} or case
        when json_typeof(m.value) = 'number' and length(m.text) <= 200 then m.text::numeric = ${value}::numeric
        else false
      end`
    : value === 'null'
      ? sql`m.text = ${value} or json_typeof(m.value) = 'null'`
      : sql`m.text = ${value}`
  return sql`((
    select ${isEqual}
    from (
      select v.value, v.value #>> '{}' as text
      from (select e.metadata #> ${toArray(path)}::text[] as value offset 0) v
      offset 0
    ) m
  ) ${isInObjects.reduce((all, one) => sql`${all} ${one}`, sql``)})`
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

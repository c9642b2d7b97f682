import { Fault, toReason } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { limitLines, logger } from '../../base/log.ts'
import { toArray } from '../../database/arrays.ts'
import { isUnavailable, type Fragment, type Queryable } from '../../database/sql.ts'
import { parseExact } from '../../http/exact-json.ts'
import { toEventJson } from '../events/event-json.ts'
import type { Event } from '../events/schema.ts'
import { isWholeName, readExactUser } from '../events/search-filters.ts'
import type { FilterFields, FilterNeeds } from './filter.ts'
import { toEventMessage } from './messages.ts'

const log = logger('feed')

/** A part of a project's log to read, and the data that its filters need. */
export interface LogSlice extends FilterNeeds {
  projectId: string
  /** Selects events with after < seq <= until. */
  after: number
  until: number
}

/** An event to publish. `text` is the whole message, serialized once for all sockets. */
export interface FeedEvent {
  projectId: string
  /** The uuid. */
  id: string
  seq: number
  text: string
  fields: FilterFields
  createdAtMs: number
}

interface Row {
  project_id: string
  id: string
  seq: string
  created_at: Date
  tags: string
  source: string
  text: string
  channel_public_id: string
  channel_slug: string
  channel_later_slug: string | null
  users: string | null
  named_users: string | null
  search_text: string | null
  /** How many events there are without the limit of bytes. */
  bounded: number
}

/** A text that is split into words takes as long as so many of its bytes without that. */
const TEXT_COST = 16

/** How many events to read. */
export interface SliceBounds {
  /** The largest number from one slice, and from all together. */
  each: number
  most: number
  /**
   * The reading ends with the event with which metadata, descriptions and urls reach these bytes.
   * If filters need the text, a byte of a description counts 16 times more.
   */
  maxBytes: number
}

/**
 * Reads the first events of each slice in order, within `bounds`. `isCut` is true if `most` may
 * have ended the reading, or `maxBytes` has. One statement reads them, so events and aliases come
 * from one snapshot.
 */
export async function readSlices(
  sql: Queryable,
  slices: readonly LogSlice[],
  { each, most, maxBytes }: SliceBounds,
): Promise<{ events: FeedEvent[]; isCut: boolean }> {
  const all = slices.flatMap(({ projectId, users }) => users.map(user => ({ projectId, user })))
  const whole = all.flatMap(({ projectId, user }) => {
    const name = isWholeName(user) ? user : readExactUser(user)
    return name === undefined ? [] : { projectId, user, name }
  })
  const names = all.filter(({ user }) => readExactUser(user) === undefined)
  const rows = await sql<Row[]>`
    with referred as materialized (
      select n.project_id, u.user_id, json_agg(n.value)::text as values
      from unnest(
          ${toArray(whole.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(whole.map(({ user }) => user))}::text[],
          ${toArray(whole.map(({ name }) => name))}::text[]
        ) as n (project_id, value, name)
        cross join lateral (select coalesce(user_of_name(n.project_id, n.name), n.name) as user_id) u
      group by 1, 2
    ), bounded as materialized (
      select ${storedColumns(sql)}, s.wants_text
      from unnest(
          ${toArray(slices.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(slices.map(({ after }) => after))}::bigint[],
          ${toArray(slices.map(({ until }) => until))}::bigint[],
          ${toArray(slices.map(({ wantsText }) => wantsText))}::boolean[]
        ) as s (project_id, after, until, wants_text)
        -- Most polled logs have no new events. This ends their part after one read of the log's head.
        cross join lateral (
          select from log_of(s.project_id) l where l.last_seq > s.after limit 1
        ) l
        cross join lateral (
          select ${storedColumns(sql)}
          from events_between(s.project_id, s.after, s.until) e
          where e.deleted_at is null
          order by e.seq
          limit ${each}
        ) e
      -- Drops only the ends of slices, because each slice is read in order.
      limit ${most}
    ), fresh as (
      select
        *,
        count(*) over ()::int as bounded,
        sum(
          size_of_event(metadata, description, url)
            + case when wants_text then ${TEXT_COST}::int * octet_length(coalesce(description, '')) else 0 end
        ) over (rows between unbounded preceding and 1 preceding) as bytes_before
      from bounded
    )
    ${names.length > 0 ? toNamedUsers(sql, names) : sql``}
    select
      e.project_id, e.id, e.seq, e.created_at, to_json(e.tags)::text as tags, e.source, t.text,
      c.public_id as channel_public_id, c.slug as channel_slug,
      -- A later name that is the first name of another channel means that one.
      case when c.name_slug <> c.slug and (
        select o.id
        from channels o
        where o.project_id = e.project_id and o.slug between c.name_slug and c.name_slug
        order by o.slug
        limit 1
      ) is null then c.name_slug end as channel_later_slug,
      n.values as users,
      ${names.length > 0 ? sql`m.values` : sql`null`} as named_users,
      case when e.wants_text then
        search_text(e.title, e.description)
      end as search_text,
      e.bounded
    from fresh e
      ${eventTextJoins(sql)}
      left join referred n on n.project_id = e.project_id and n.user_id = t.user_id
      ${
        names.length > 0
          ? sql`left join named m on m.project_id = e.project_id and m.user_ref = e.user_ref`
          : sql``
      }
    where coalesce(e.bytes_before, 0) < ${maxBytes}
    order by e.project_id, e.seq
  `
  const events = rows.map(toFeedEvent)
  const [{ bounded } = { bounded: 0 }] = rows
  return { events, isCut: events.length >= most || events.length < bounded }
}

/**
 * The users of the events `fresh` with the filters, of `names`, that name them: see `hasName` in
 * src/log/events/event-conditions.ts. A user_id or an alias of several words takes precedence over
 * an equal name of others.
 */
function toNamedUsers(sql: Queryable, names: { projectId: string; user: string }[]): Fragment {
  return sql`, wanted as materialized (
    select n.project_id, n.value, fold_text(n.name) as name, n.is_whole
    from unnest(
        ${toArray(names.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(names.map(({ user }) => user))}::text[],
        ${toArray(names.map(({ user }) => user.trim().replaceAll(/\s+/gu, ' ')))}::text[],
        ${toArray(names.map(({ user }) => isWholeName(user)))}::boolean[]
      ) as n (project_id, value, name, is_whole)
    where not n.is_whole or user_of_name(n.project_id, n.value) is null
  ), named as materialized (
    select u.project_id, u.user_ref, json_agg(w.value)::text as values
    from (select distinct f.project_id, f.user_ref from fresh f where f.user_ref is not null) u
      cross join lateral (
        select array_agg(fold_text(n.name)) as folded, array_agg(fold_text(one_line(n.name))) as lines
        from unnest(all_names_of_user(u.project_id, u.user_ref)) as n (name)
      ) n
      join wanted w on w.project_id = u.project_id and case
        when w.is_whole then w.name = any(n.lines)
        else exists (select from unnest(n.folded) as f (name) where starts_with(f.name, w.name))
      end
    group by 1, 2
  )`
}

/** The columns of a row `e` of `events` that `eventTextJoins` reads. */
function storedColumns(sql: Queryable): Fragment {
  return sql`
    e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
    e.tags, e.metadata, e.source, e.notify, e.level, e.url, e.thread, e.state, e.thread_seq
  `
}

/**
 * Joins a row `e` with its channel `c`, and with `t`, the row of the SQL function `text_of_event`.
 * The lateral join forces one look-up for each event, whatever the size of the table.
 */
function eventTextJoins(sql: Queryable): Fragment {
  return sql`
    left join lateral (
      select c.public_id, c.name, c.slug, c.name_slug
      from channel_by_id(e.project_id, e.channel_id) c limit 1
    ) c on true
    cross join lateral text_of_event(
      e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at, e.title,
      e.description, e.icon, e.tags, e.metadata, e.source, e.notify, e.level, e.url, e.thread, e.state, e.thread_seq
    ) t
  `
}

function toFeedEvent(row: Row): FeedEvent {
  const seq = Number(row.seq)
  const json = toEventJson(row.text)
  let event: Event | undefined
  return {
    projectId: row.project_id,
    id: row.id,
    seq,
    text: toEventMessage(toId('prj', row.project_id), seq, json),
    fields: {
      channelNames: [
        row.channel_public_id,
        row.channel_slug,
        ...(row.channel_later_slug === null ? [] : [row.channel_later_slug]),
      ],
      tags: JSON.parse(row.tags) as string[],
      source: row.source,
      users: [row.users, row.named_users].flatMap(values =>
        values === null ? [] : (JSON.parse(values) as string[]),
      ),
      searchText: row.search_text ?? '',
      event: () => (event ??= parseExact(json).value as Event),
    },
    createdAtMs: row.created_at.getTime(),
  }
}

// A client can repeat a message that meets a bug.
const reportBug = limitLines((failure, count) =>
  log.error('{failure}', { failure, ...(count > 1 && { count }) }),
)

/** Logs a failed operation: as `debug` when the database is unavailable, otherwise as an error. */
export function logFailure(message: string, error: unknown): void {
  const failure = `${message}: ${toReason(error)}`
  if (error instanceof Fault || isUnavailable(error)) log.debug('{failure}', { failure })
  else reportBug(failure)
}

import { toArray } from '../db/arrays.ts'
import { isUnavailable, type Queryable } from '../db/sql.ts'
import { Fault, toReason } from '../errors.ts'
import { eventTextJoins, storedColumns } from '../events/event-columns.ts'
import { toEventJson } from '../events/event-json.ts'
import { toId } from '../ids.ts'
import { logger } from '../log.ts'
import type { FilterFields } from './filter.ts'
import { toEventMessage } from './messages.ts'

const log = logger('feed')

/** A part of a project's log to read, and the data that its filters need. */
export interface LogSlice {
  projectId: string
  /** Selects events with after < seq <= until. */
  after: number
  until: number
  /** The user_ids and aliases in filters. */
  userNames: readonly string[]
  wantsLexemes: boolean
}

/** An event to publish. `text` is the whole message, serialized once for all sockets. */
export interface FeedEvent {
  projectId: string
  seq: number
  text: string
  fields: FilterFields
  createdAtMs: number
}

interface Row {
  project_id: string
  seq: string
  created_at: Date
  tags: string
  source: string
  text: string
  channel_public_id: string
  channel_slug: string
  user_names: string | null
  lexemes: string | null
}

/** How many events to read. */
export interface SliceBounds {
  /** The largest number from one slice, and from all together. */
  each: number
  most: number
  /** The reading ends with the event with which metadata and descriptions reach these bytes. */
  maxBytes: number
}

/**
 * Reads the first events of each slice in order, within `bounds`. `isCut` is true if `most` or
 * `maxBytes` may have ended the reading. One statement reads them, so events and aliases come from
 * one snapshot.
 */
export async function readSlices(
  sql: Queryable,
  slices: readonly LogSlice[],
  { each, most, maxBytes }: SliceBounds,
): Promise<{ events: FeedEvent[]; isCut: boolean }> {
  const names = slices.flatMap(({ projectId, userNames }) =>
    userNames.map(name => ({ projectId, name })),
  )
  const rows = await sql<Row[]>`
    with named as materialized (
      select n.project_id, n.name, coalesce(i.user_id, a.user_id, n.name) as user_id
      from unnest(
          ${toArray(names.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(names.map(({ name }) => name))}::text[]
        ) as n (project_id, name)
        left join lateral (
          select i.user_id from identities i where i.project_id = n.project_id and i.user_id = n.name limit 1
        ) i on true
        left join lateral (
          select a.user_id from aliases a where a.project_id = n.project_id and a.alias = n.name limit 1
        ) a on true
    ), bounded as materialized (
      select ${storedColumns(sql)}, s.wants_lexemes
      from unnest(
          ${toArray(slices.map(({ projectId }) => projectId))}::uuid[],
          ${toArray(slices.map(({ after }) => after))}::bigint[],
          ${toArray(slices.map(({ until }) => until))}::bigint[],
          ${toArray(slices.map(({ wantsLexemes }) => wantsLexemes))}::boolean[]
        ) as s (project_id, after, until, wants_lexemes)
        -- Most polled logs have no new events. This ends their part after one read of the log's head.
        cross join lateral (
          select from event_logs l where l.project_id = s.project_id and l.last_seq > s.after limit 1
        ) l
        cross join lateral (
          select ${storedColumns(sql)}
          from events e
          where e.project_id = s.project_id and e.seq > s.after and e.seq <= s.until and e.deleted_at is null
          order by e.seq
          limit ${each}
        ) e
      -- Drops only the ends of slices, because each slice is read in order.
      limit ${most}
    ), fresh as (
      select
        *,
        sum(bytes_of_event(metadata, description))
          over (rows between unbounded preceding and 1 preceding) as bytes_before
      from bounded
    )
    select
      e.project_id, e.seq, e.created_at, to_json(e.tags)::text as tags, e.source, t.text,
      c.public_id as channel_public_id, c.slug as channel_slug,
      (
        select json_agg(n.name)::text
        from named n
        where n.project_id = e.project_id and n.user_id = t.user_id
      ) as user_names,
      case when e.wants_lexemes then
        array_to_json(tsvector_to_array(words_of_event(e.title, e.description)))::text
      end as lexemes
    from fresh e
      ${eventTextJoins(sql)}
    where coalesce(e.bytes_before, 0) < ${maxBytes}
    order by e.project_id, e.seq
  `
  const events = rows.map(toFeedEvent)
  const bytes = events.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  return { events, isCut: events.length >= most || bytes >= maxBytes }
}

/** Returns the lexemes of a filter's text, as search splits it. */
export async function readLexemes(sql: Queryable, text: string): Promise<string[]> {
  const [row] = await sql<[{ lexemes: string }]>`
    select array_to_json(tsvector_to_array(to_tsvector('simple', ${text})))::text as lexemes
  `
  return JSON.parse(row.lexemes) as string[]
}

function toFeedEvent(row: Row): FeedEvent {
  const seq = Number(row.seq)
  const lexemes = row.lexemes === null ? [] : (JSON.parse(row.lexemes) as string[])
  return {
    projectId: row.project_id,
    seq,
    text: toEventMessage(toId('prj', row.project_id), seq, toEventJson(row.text)),
    fields: {
      channelId: row.channel_public_id,
      channelSlug: row.channel_slug,
      tags: JSON.parse(row.tags) as string[],
      source: row.source,
      userNames: row.user_names === null ? [] : (JSON.parse(row.user_names) as string[]),
      lexemes: lexemes.sort(),
    },
    createdAtMs: row.created_at.getTime(),
  }
}

/** Logs a failed operation: as `debug` when the database is unavailable, otherwise as an error. */
export function logFailure(message: string, error: unknown): void {
  const properties = { message, reason: toReason(error) }
  if (error instanceof Fault || isUnavailable(error)) log.debug('{message}: {reason}', properties)
  else log.error('{message}: {reason}', properties)
}

import { toId } from '../../base/ids.ts'
import type { Queryable } from '../../database/sql.ts'
import { rest, type Archive, type DueMonth } from './archive.ts'
import type { ArchivedEvent } from './columns.ts'

const PAGE_SIZE = 500
/** A page ends after the event with which its texts reach this size. */
const PAGE_BYTES = 8 * 1024 * 1024
/** The pause after a page, as a multiple of the time that it took with what followed. */
const PAUSE_FACTOR = 4

/**
 * Yields the due events of a month in pages: in the order of the log for a whole month, and else
 * channel by channel. Each page is a statement of its own, so no transaction is open for long.
 */
export async function* readDueEvents(
  archive: Archive,
  due: DueMonth,
): AsyncGenerator<ArchivedEvent[]> {
  if (due.isWhole) yield* readLog(archive, due)
  else {
    for (const channel of await listExpiredChannels(archive.sql, due)) {
      yield* readLog(archive, due, channel)
    }
  }
}

async function* readLog(
  archive: Archive,
  due: DueMonth,
  channel?: string,
): AsyncGenerator<ArchivedEvent[]> {
  let after = '0'
  for (;;) {
    const startedMs = performance.now()
    const rows = await readPage(archive.sql, due, { channel, after })
    const last = rows.at(-1)
    if (!last) return
    after = last.seq
    const end = rows.findIndex(({ is_due }) => !is_due)
    const page = end === -1 ? rows : rows.slice(0, end)
    yield page.filter(({ is_hidden }) => !is_hidden).map(toEvent)
    if (end !== -1) return
    await rest(archive, startedMs, PAUSE_FACTOR)
  }
}

/** Lists the channels with events of the month that they do not keep any longer. */
async function listExpiredChannels(
  sql: Queryable,
  { projectId, month }: DueMonth,
): Promise<string[]> {
  const [row] = await sql<[{ ids: string[] | null }]>`
    select json_agg(c.id order by c.id) as ids
    from channels_of(${projectId}) c
      cross join lateral (
        select oldest_event_at(c.project_id, c.id) as created_at, retention_cutoff(c.project_id, c.id) as cutoff
        offset 0
      ) o
    where o.created_at < o.cutoff
      and date_trunc('month', o.created_at) = ${`${month}-01`}::timestamp
  `
  return row.ids ?? []
}

interface Row {
  seq: string
  id: string
  channel_id: string
  channel_name: string
  title: string
  description: string | null
  icon: string | null
  tags: string[]
  metadata: string
  user_id: string | null
  user_ref: string | null
  source: string
  notify: boolean
  occurred_ms: number
  created_ms: number
  /** True if a member deleted the event. It is purged soon, or restored and due again. */
  is_hidden: boolean
  /** False for the first event of another month, and for the first one that its channel keeps. */
  is_due: boolean
}

async function readPage(
  sql: Queryable,
  { projectId, month }: DueMonth,
  { channel, after }: { channel: string | undefined; after: string },
): Promise<Row[]> {
  const first = `${month}-01`
  const cutoff = channel === undefined ? undefined : await readCutoff(sql, projectId, channel)
  return await sql<Row[]>`
    with page as materialized (
      select
        e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon, e.tags,
        e.metadata, e.source, e.notify, e.deleted_at,
        sum(bytes_of_event(e.metadata, e.description)) over (
          order by e.seq rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from events e
      -- An event with a time in the future stays until then.
      where e.project_id = ${projectId} and e.seq > ${after} and e.created_at <= now()
        ${channel === undefined ? sql`` : sql`and e.channel_id = ${channel}`}
      order by e.seq
      limit ${PAGE_SIZE}
    )
    select
      e.seq, e.id, c.public_id as channel_id, c.name as channel_name, e.title, e.description, e.icon,
      to_json(e.tags) as tags, e.metadata::text as metadata, e.user_ref, e.source, e.notify,
      coalesce(user_of_name(${projectId}, e.user_ref), e.user_ref) as user_id,
      (extract(epoch from e.occurred_at) * 1000)::float8 as occurred_ms,
      (extract(epoch from e.created_at) * 1000)::float8 as created_ms,
      e.deleted_at is not null as is_hidden,
      date_trunc('month', e.created_at) = ${first}::timestamp
        ${cutoff === undefined ? sql`` : sql`and coalesce(e.created_at < ${cutoff}, false)`} as is_due
    from page e
      join channels c on c.project_id = ${projectId} and c.id = e.channel_id
    where e.bytes_before is null or e.bytes_before < ${PAGE_BYTES}
    order by e.seq
  `
}

/** Returns the time before which a channel's events have expired; null when it keeps them. */
async function readCutoff(
  sql: Queryable,
  projectId: string,
  channel: string,
): Promise<Date | null> {
  const [row] = await sql<[{ at: Date | null }]>`
    select retention_cutoff(${projectId}, ${channel}) as at
  `
  return row.at
}

function toEvent(row: Row): ArchivedEvent {
  return {
    id: toId('evt', row.id),
    seq: BigInt(row.seq),
    channelId: row.channel_id,
    channelName: row.channel_name,
    title: row.title,
    description: row.description,
    icon: row.icon,
    tags: row.tags,
    metadata: row.metadata,
    userId: row.user_id,
    userRef: row.user_ref,
    source: row.source,
    notify: row.notify,
    timestamp: new Date(Math.floor(row.occurred_ms)),
    createdAt: new Date(Math.floor(row.created_ms)),
  }
}

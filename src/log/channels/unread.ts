import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import { channelNotFound, toChannelUuid, unreadColumn, type Reader } from './channels.ts'
import type { ReadMarkInput, UnreadCounts } from './schema.ts'

const MAX_CHANNELS = 1_000
const MAX_TOTAL = 1_000

/**
 * Counts the events that `reader` has not read in the newest 1,000 channels that are not archived.
 * `channelIds` (uuids) limits the count to those channels.
 */
export async function getUnread(
  sql: Queryable,
  reader: Reader,
  channelIds?: readonly string[],
): Promise<UnreadCounts> {
  const rows = await sql<{ id: string; unread: number }[]>`
    with chosen as materialized (
      select c.project_id, c.id, c.public_id
      from channels c
      where c.project_id = ${reader.projectId} and not c.is_archived
        ${channelIds ? sql`and c.id = any(${toArray(channelIds)}::uuid[])` : sql``}
      order by c.id desc
      limit ${MAX_CHANNELS}
    ), counted as materialized (
      select c.public_id, c.id, ${unreadColumn(sql, reader)} as unread
      from chosen c
    )
    select public_id as id, unread
    from counted
    where unread > 0
    order by counted.id desc
  `
  const sum = rows.reduce((total, { unread }) => total + unread, 0)
  return {
    total: Math.min(sum, MAX_TOTAL),
    channels: rows.map(({ id, unread }) => ({ id, unread })),
  }
}

/**
 * Moves the read mark of `reader` to `seq`, in one channel or in all. A mark moves only forward,
 * and not beyond the head of the log. Returns the new mark. Throws `not_found` for an unknown
 * channel.
 */
export async function markRead(
  sql: Queryable,
  { projectId, accountId }: Reader,
  { channelId, seq }: ReadMarkInput,
): Promise<number> {
  const uuid = channelId === undefined ? null : toChannelUuid(channelId)
  const [mark] = await sql<{ seq: string }[]>`
    insert into read_marks as r (account_id, project_id, channel_id, seq)
    select ${accountId}::uuid, l.project_id, ${uuid}::uuid, least(${seq}::bigint, l.last_seq)
    from log_of(${projectId}) l
    where ${uuid === null ? sql`true` : sql`exists (select from channel_by_id(${projectId}, ${uuid}))`}
    on conflict (project_id, channel_id, account_id) do update set seq = greatest(r.seq, excluded.seq)
    returning r.seq
  `
  if (!mark) throw channelNotFound()
  return Number(mark.seq)
}

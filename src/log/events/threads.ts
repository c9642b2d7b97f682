import { toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import { DEFAULT_PAGE_LIMIT, parseCursor, toCursor, toPage } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import { findChannels } from '../channels/channels.ts'
import { LEVELS } from '../channels/level.ts'
import type { Thread, ThreadPage, ThreadQuery } from './thread-schema.ts'
import { MAX_SEQ } from './seq-ranges.ts'
import { STATES } from './state.ts'

/** The largest `severity` of a thread. */
const WORST = 7
/** Stands for the account of an acknowledgement that was deleted. */
export const FORMER_MEMBER = 'A former member'
const SEQ = /^[1-9]\d{0,17}$/

type Row = Omit<Thread, 'state' | 'level' | 'event' | 'acknowledged'> &
  Omit<Thread['event'], 'url'> &
  Record<'state' | 'level' | 'severity', number | null> & {
    url: string | null
    /** The acknowledgement, if it has not ended. */
    at: string | null
    until: string | null
    accountId: string | null
    tokenName: string | null
  }

/**
 * Lists a page of a project's open threads, the worst first, and the oldest first of those that are
 * equally bad. With a channel and a key, lists all threads of the key, newest first.
 */
export async function listThreads(
  sql: Queryable,
  projectId: string,
  query: ThreadQuery,
): Promise<ThreadPage> {
  const { channel, thread, cursor, limit = DEFAULT_PAGE_LIMIT } = query
  if ((channel === undefined) !== (thread === undefined)) {
    const missing = channel === undefined ? 'channel' : 'thread'
    throw invalidField(missing, 'required', 'Give `channel` and `thread` together')
  }
  const rows = limit + 1
  const isOpen = thread === undefined
  const [seq = isOpen ? '0' : String(MAX_SEQ), severity = WORST] =
    parseCursor(cursor, isOpen ? [SEQ, /^[0-7]$/] : [SEQ]) ?? []
  const [channelId = null] = isOpen ? [] : await findChannels(sql, projectId, [channel ?? ''])
  // An index has the order of each part. The comparison of rows keeps the planner from reading
  // other keys by the primary key.
  const found = isOpen
    ? sql`
      select t.*
      from generate_series(${Number(severity)}, 0, -1) as s (severity)
        cross join lateral (
          select t.*
          from threads t
          where t.project_id = ${projectId} and t.severity = s.severity
            and t.thread_seq > case when s.severity = ${Number(severity)} then ${seq}::bigint else 0 end
          order by t.thread_seq
          limit ${rows}
        ) t
      order by t.severity desc, t.thread_seq
      limit ${rows}
    `
    : sql`
      select t.*
      from threads t
      where t.project_id = ${projectId}
        and (t.channel_id, t.key, t.thread_seq) >= (${channelId}::uuid, ${thread}, 0)
        and (t.channel_id, t.key, t.thread_seq) < (${channelId}::uuid, ${thread}, ${seq}::bigint)
      order by t.channel_id desc, t.key desc, t.thread_seq desc
      limit ${rows}
    `
  const order = isOpen ? sql`t.severity desc, t.thread_seq` : sql`t.thread_seq desc`
  const threads = await sql<Row[]>`
    select
      t.thread_seq::float8 as "threadSeq", t.key as thread, c.public_id as "channelId", c.name as "channelName",
      t.state, t.level, t.severity, t.count::float8 as count,
      to_iso(t.opened_at) as "openedAt", to_iso(t.updated_at) as "updatedAt",
      e.id, t.last_seq::float8 as seq, e.title, e.icon, e.url,
      to_iso(a.at) as at, to_iso(a.until) as until, a.account_id as "accountId", a.token_name as "tokenName"
    from (${found}) t
      cross join lateral (
        select c.public_id, c.name
        from channels c
        where c.project_id = ${projectId} and c.id >= t.channel_id and c.id <= t.channel_id
        order by c.id
        limit 1
      ) c
      cross join lateral (
        select e.id, e.title, e.icon, e.url
        from events e
        where e.project_id = ${projectId} and e.seq >= t.last_seq and e.seq <= t.last_seq
        order by e.seq
        limit 1
      ) e
      left join lateral (
        select a.at, a.until, a.account_id, a.token_name
        from acknowledgements a
        where a.project_id = ${projectId} and a.thread_seq >= t.thread_seq and a.thread_seq <= t.thread_seq
          and (a.until is null or a.until > now())
        order by a.thread_seq
        limit 1
      ) a on true
    order by ${order}
  `
  const accountIds = threads.flatMap(({ accountId }) => accountId ?? [])
  const accounts =
    accountIds.length > 0
      ? await sql<{ id: string; name: string }[]>`
          select id, name from accounts where id = any(${toArray(accountIds)}::uuid[])
        `
      : []
  const names = new Map(accounts.map(({ id, name }) => [id, name]))
  const page = toPage(threads, query, ({ threadSeq, severity: rank }) =>
    toCursor(isOpen ? [threadSeq, rank ?? 0] : [threadSeq]),
  )
  return { ...page, items: page.items.map(row => toThread(row, names)) }
}

function toThread(row: Row, names: ReadonlyMap<string, string>): Thread {
  const { state, level, severity: _, id, seq, title, icon, url, ...others } = row
  const { at, until, accountId, tokenName, ...rest } = others
  const by = names.get(accountId ?? '') ?? tokenName ?? FORMER_MEMBER
  return {
    ...rest,
    ...(state !== null && { state: STATES[state]! }),
    ...(level !== null && { level: LEVELS[level]! }),
    event: { id: toId('evt', id), seq, title, icon, ...(url !== null && { url }) },
    ...(at !== null && { acknowledged: { by, at, ...(until !== null && { until }) } }),
  }
}

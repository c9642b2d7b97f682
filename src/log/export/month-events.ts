import { toId } from '../../base/ids.ts'
import type { Queryable } from '../../database/sql.ts'
import { UNDO_GRACE_S } from '../events/deletion.ts'
import type { ExportedEvent } from './columns.ts'

const PAGE_SIZE = 500
/** A page ends after the event with which its texts reach this size. */
const PAGE_BYTES = 8 * 1024 * 1024

/** The events of a project after a seq, up to the first one that was created at `end` or later. */
export interface LogPart {
  /** A uuid. */
  projectId: string
  after: string
  end: Date
}

/** A page of a part of the log. */
export interface Page {
  /** Without those that a member has deleted, and cannot restore any more. */
  events: ExportedEvent[]
  /** The seqs of the first and the last event that were read. */
  firstSeq: string
  lastSeq: string
}

/**
 * Yields a part of the log in pages. Each is a statement of its own, so no transaction is open for
 * long.
 */
export async function* readPart(sql: Queryable, part: LogPart): AsyncGenerator<Page> {
  for (let after = part.after; ;) {
    const rows = await readPage(sql, { ...part, after })
    const end = rows.findIndex(({ isDue }) => !isDue)
    const due = end === -1 ? rows : rows.slice(0, end)
    const [first, last] = [due[0], due.at(-1)]
    if (!first || !last) return
    yield {
      events: due.filter(({ isHidden }) => !isHidden).map(toEvent),
      firstSeq: first.seq,
      lastSeq: last.seq,
    }
    if (end !== -1) return
    after = last.seq
  }
}

interface Row extends Omit<ExportedEvent, 'seq' | 'threadSeq' | 'timestamp' | 'createdAt'> {
  seq: string
  threadSeq: string | null
  occurredMs: number
  createdMs: number
  /** True if a member deleted the event, and cannot undo that any more. */
  isHidden: boolean
  /** False from the end of the part on. */
  isDue: boolean
}

async function readPage(sql: Queryable, { projectId, after, end }: LogPart): Promise<Row[]> {
  return await sql<Row[]>`
    with page as materialized (
      select
        e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon, e.tags,
        e.metadata, e.source, e.notify, e.level, e.url, e.thread, e.state, e.thread_seq, e.deleted_at,
        sum(size_of_event(e.metadata, e.description, e.url)) over (
          order by e.seq rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from events e
      where e.project_id = ${projectId} and e.seq > ${after}
      order by e.seq
      limit ${PAGE_SIZE}
    )
    select
      e.seq, e.id, c.public_id as "channelId", c.name as "channelName", e.title, e.description, e.icon,
      to_json(e.tags) as tags, e.metadata::text as metadata, e.user_ref as "userRef", e.source, e.notify,
      coalesce(level_name(e.level), 'normal') as level, e.url,
      e.thread, state_name(e.state) as state, e.thread_seq as "threadSeq",
      coalesce(user_of_name(${projectId}, e.user_ref), e.user_ref) as "userId",
      (extract(epoch from e.occurred_at) * 1000)::float8 as "occurredMs",
      (extract(epoch from e.created_at) * 1000)::float8 as "createdMs",
      coalesce(e.deleted_at < now() - make_interval(secs => ${UNDO_GRACE_S}), false) as "isHidden",
      e.created_at < ${end} as "isDue"
    from page e
      join channels c on c.project_id = ${projectId} and c.id = e.channel_id
    where e.bytes_before is null or e.bytes_before < ${PAGE_BYTES}
    order by e.seq
  `
}

function toEvent({ id, seq, occurredMs, createdMs, isHidden, isDue, ...row }: Row): ExportedEvent {
  return {
    ...row,
    threadSeq: row.threadSeq === null ? null : BigInt(row.threadSeq),
    id: toId('evt', id),
    seq: BigInt(seq),
    timestamp: new Date(Math.floor(occurredMs)),
    createdAt: new Date(Math.floor(createdMs)),
  }
}

import { Fault } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'
import type { PushEvent, Unread } from './payload.ts'

/** A push that is about to be sent. */
export interface ShownPush {
  /** The uuid of the device. */
  id: string
  tag: string
  event: PushEvent
  /** False for a burst or a storm. */
  isAboutEvent: boolean
}

/**
 * Keeps pushes that are about to be sent, so that each one counts those that are sent with it.
 * Returns what each says of its device.
 */
export async function keepShownPushes(
  sql: Queryable,
  pushes: readonly ShownPush[],
): Promise<Unread[]> {
  const column = (value: (push: ShownPush) => string | number | null) => toArray(pushes.map(value))
  return sql<Unread[]>`
    select badge, read_tags as close
    from keep_shown_pushes(
      project_ids => ${column(({ event }) => event.projectId)}::uuid[],
      channel_ids => ${column(({ event }) => event.channelId)}::uuid[],
      seqs => ${column(({ event }) => event.seq)}::bigint[],
      about_seqs => ${column(({ event, isAboutEvent }) => (isAboutEvent ? (event.thread?.threadSeq ?? event.seq) : null))}::bigint[],
      devices => ${column(({ id }) => id)}::uuid[],
      tags => ${column(({ tag }) => tag)}::text[]
    )
  `
}

/**
 * Notes that an account has opened an event, and returns the threadSeq or the seq of it. The
 * account's devices close the notification with their next push. Throws `not_found`.
 */
export async function openEvent(
  sql: Queryable,
  { projectId, accountId }: { projectId: string; accountId: string },
  eventId: string,
): Promise<number> {
  const uuid = parseId('evt', eventId)
  const [event] = uuid
    ? await sql<{ seq: string }[]>`
        select coalesce(e.thread_seq, e.seq) as seq
        from event_by_id(${projectId}, ${uuid}) e
        where e.deleted_at is null
      `
    : []
  if (!event) throw new Fault('not_found', 'No event has this id')
  await sql`
    update shown_pushes s set is_opened = true
    from push_subscriptions d
    where d.account_id = ${accountId} and s.target_id = d.id and s.project_id = ${projectId}
      and s.about_seq = ${event.seq}
  `
  return Number(event.seq)
}

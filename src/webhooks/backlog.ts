import type { Sql } from '../db/sql.ts'

/** Deliveries that may wait for one webhook; it is looked at every ten seconds, so that some more may. */
export const MAX_BACKLOG = 100_000
/** There is room again when a tenth of them is gone. */
const ROOM_AT = 0.9 * MAX_BACKLOG

/** Why an event was not queued for a webhook: a sentence for its page, behind a word for programs. */
export const BACKLOG_FULL =
  'backlog_full: 100,000 deliveries wait for this webhook already. Recover the time once it works again'

/**
 * Marks the webhooks for which as many deliveries wait as may, and unmarks those that have room again. The walk from
 * target to target is spared while it is known that there are not so many (`mayBeFull`).
 */
export async function markBacklogs(sql: Sql, mayBeFull: boolean): Promise<void> {
  await sql`
    update webhooks w set backlog_full_at = null
    where w.backlog_full_at is not null and not exists (
      select from outbox o
      where o.kind = 'webhook' and o.target_id = w.id
      order by o.available_at
      limit 1 offset ${ROOM_AT - 1}
    )
  `
  if (!mayBeFull) return
  await sql`
    with recursive walk as (
      (select o.target_id from outbox o where o.kind = 'webhook' order by o.target_id limit 1)
      union all
      select n.target_id
      from walk t
        cross join lateral (
          select o.target_id
          from outbox o
          where o.kind = 'webhook' and o.target_id > t.target_id
          order by o.target_id
          limit 1
        ) n
    )
    update webhooks w set backlog_full_at = now()
    from walk t
    where w.id = t.target_id and w.backlog_full_at is null and exists (
      select from outbox o
      where o.kind = 'webhook' and o.target_id = t.target_id
      order by o.available_at
      limit 1 offset ${MAX_BACKLOG - 1}
    )
  `
}

import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import type { Dispatched, EventRanges } from '../outbox/kind.ts'

/** The reasons why a push is withheld, as sentences for the page of the event. */
export const WITHHELD_REASONS = {
  notifyFalse: 'The event was sent with notify: false',
  archived: 'The channel is archived',
  old: 'The event happened more than 10 minutes before it was sent',
  noDevice: 'No member of the organization has a device for notifications',
  off: 'Notifications are off on this device',
  muted: 'The member has muted the channel',
  quiet: 'This device has quiet hours',
  collapsed: 'Collapsed: after 10 notifications in a minute, one notification counts the rest',
} as const

/**
 * Returns a condition: the project of the event has devices. For other projects nothing is written,
 * because a record would cost as much as the event. `explainNoPush` derives the reason instead.
 */
export function hasDevices(sql: Queryable): Fragment {
  return sql`exists (
    select
    from projects p
      cross join lateral subscribed_devices(p.organization_id)
    where p.id = c.project_id
  )`
}

/**
 * Enqueues pushes for some events, and records the pushes that are withheld. Returns the number of
 * deliveries.
 */
export async function dispatchPushes(
  tx: Tx,
  { projectIds, fromSeqs, toSeqs }: EventRanges,
): Promise<Dispatched> {
  const [{ count }] = await tx<[{ count: number }]>`
    select dispatch_pushes(
      ${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[], ${JSON.stringify(WITHHELD_REASONS)}::text::jsonb
    ) as count
  `
  return { count, leased: [] }
}

/**
 * Explains why an event has neither a push nor a record: nobody had a device. Undefined if its
 * records may have been deleted, or if it is older than this kind of delivery.
 */
export async function explainNoPush(
  sql: Queryable,
  { projectId, eventId }: { projectId: string; eventId: string },
): Promise<{ reason: string; at: Date } | undefined> {
  const [row] = await sql<{ notify: boolean; created_at: Date }[]>`
    select e.notify, e.created_at
    from events e
      join delivery_kinds k on k.kind = 'push' and k.since <= e.created_at
    where e.project_id = ${projectId} and e.id = ${eventId} and e.deleted_at is null
      -- Records are kept for 30 days.
      and e.created_at > now() - interval '29 days'
  `
  const reason = row?.notify ? WITHHELD_REASONS.noDevice : WITHHELD_REASONS.notifyFalse
  return row && { reason, at: row.created_at }
}

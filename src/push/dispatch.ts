import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import type { EventRanges } from '../outbox/kind.ts'

/** Why a push was withheld: sentences for the event's page. */
export const WITHHELD_REASONS = {
  notifyFalse: 'The event was sent with notify: false',
  archived: 'Its channel is archived',
  old: 'It happened more than 10 minutes before it was sent',
  noDevice: 'No device: nobody in the organization takes notifications',
  off: 'Notifications are off on this device',
  muted: 'The person has muted the channel',
  quiet: 'It was in the quiet hours of this device',
  collapsed: 'Collapsed: it is among those that one notification counts, after 10 in a minute',
} as const

/**
 * Whether a project has devices. Without any, nothing is written for an event, because a record would cost as much as
 * the event: `explainNoPush` derives the reason.
 */
export function hasDevices(sql: Queryable): Fragment {
  return sql`exists (
    select
    from projects p
      cross join lateral subscribed_devices(p.organization_id)
    where p.id = c.project_id
  )`
}

/** Enqueues the pushes of some events, and records those that are withheld. Returns the number of deliveries. */
export async function dispatchPushes(
  tx: Tx,
  { projectIds, fromSeqs, toSeqs }: EventRanges,
): Promise<number> {
  const [{ count }] = await tx<[{ count: number }]>`
    select dispatch_pushes(
      ${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[], ${JSON.stringify(WITHHELD_REASONS)}::text::jsonb
    ) as count
  `
  return count
}

/**
 * Explains an event that was dispatched without a record: nobody had a device. Undefined where the record may have
 * expired, or where the event is older than this kind of delivery.
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

import { toArray } from '../../database/arrays.ts'
import type { Queryable, Sql, Tx } from '../../database/sql.ts'
import type { Dispatched, DispatchRequest } from '../outbox/delivery-kind.ts'
import { toDispatched, type DispatchedRow } from '../outbox/delivery-kind.ts'

/** The reasons why a push is withheld, as sentences for the page of the event. */
export const WITHHELD_REASONS = {
  notifyFalse: 'The event was sent with notify: false',
  low: 'Low events are not pushed',
  archived: 'The channel is archived',
  old: 'The event happened more than 10 minutes before it was sent',
  noDevice: 'No member of the organization has a device for notifications',
  secondFactor: 'The organization requires a second factor. Sign in with one on this device',
  off: 'Notifications are off on this device',
  muted: 'The member has muted the channel',
  mutedHere: 'Muted on this device',
  quiet: 'This device has quiet hours',
  collapsed: 'Collapsed: after 10 notifications in a minute, one notification counts the rest',
  notOpen: 'The thread was not open',
  silenced: 'Silenced',
  wasSilenced: 'It was silenced until its silence ended',
  storm: 'Part of a storm: told with others of the channel',
  staged: 'Its channel tells members in stages',
  acknowledged: 'Acknowledged by a member',
  untold: 'This device was not told of the thread',
  replaced: 'A newer update of the thread replaced it',
} as const
export const WITHHELD_SENTENCES = JSON.stringify(WITHHELD_REASONS)

/**
 * Enqueues pushes for the new events of some projects, and records the pushes that are withheld. A
 * project without devices gets no records, because a record would cost as much as the event.
 * `explainNoPush` derives the reason instead. `onViews` is called if views are to be matched.
 */
export async function dispatchPushes(
  sql: Sql,
  request: DispatchRequest,
  onViews?: () => void,
): Promise<Dispatched> {
  const { projectIds, maxEvents } = request
  let hasBells = false
  const dispatched = await sql.begin(async tx => {
    const [row] = await tx<[DispatchedRow & { has_bells: boolean }]>`
      select ranges, count, has_bells
      from dispatch_push_ranges(${toArray(projectIds)}::uuid[], ${maxEvents}, ${WITHHELD_SENTENCES}::text::jsonb)
    `
    hasBells = row.has_bells
    if (hasBells) await addBellRanges(tx, row.ranges)
    return toDispatched(row, request)
  })
  if (hasBells) onViews?.()
  return dispatched
}

/** Keeps the events of dispatched ranges for the views with a bell, in the same transaction. */
async function addBellRanges(tx: Tx, ranges: DispatchedRow['ranges']): Promise<void> {
  await tx`
    insert into bell_ranges (project_id, from_seq, to_seq)
    select t.project_id, t.from_seq, t.to_seq
    from json_to_recordset(${JSON.stringify(ranges)}::text::json)
      as t (project_id uuid, from_seq bigint, to_seq bigint, has_targets boolean)
    where t.has_targets and exists (select from view_bells b where b.project_id = t.project_id)
  `
}

/** Explains why an event has neither a push nor a record, which needs a device. */
export function explainNoPush(
  _: Queryable,
  { notify, level }: { notify: boolean; level: string | null },
): string {
  if (!notify) return WITHHELD_REASONS.notifyFalse
  return level === 'low' ? WITHHELD_REASONS.low : WITHHELD_REASONS.noDevice
}

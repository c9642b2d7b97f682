import { isExpired } from '../accounts/sessions.ts'
import { toArray, toPlaces } from '../db/arrays.ts'
import type { Queryable } from '../db/sql.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { ToldEvent } from './payload.ts'
import { isQuiet } from './quiet.ts'
import { WITHHELD } from './reasons.ts'
import { openAddress, type Address } from './subscriptions.ts'

/** What a push needs to know of its device, its person and its event, as of now; ids are uuids. */
export interface Receiver {
  id: string
  personId: string
  address: Address
  /** Of the endpoint: a browser that has subscribed anew meanwhile has another. */
  endpointHash: string
  /** Undefined where it is gone, or the person has nothing to do with it any more. */
  event: ToldEvent | undefined
  /** Whether somebody has deleted the event, and may still bring it back. */
  isHidden: boolean
  /** Why it is not wanted, if so. */
  withheld: string | undefined
  /** Whether this push is the one that counts the events of a burst. */
  isCount: boolean
  /** By the clock of the database. */
  nowMs: number
}

/** A delivery by its uuids: which device is to be told of which event. */
export interface Target {
  projectId: string
  eventId: string
  targetId: string
}

/** The same as the database has it, with its address sealed. */
export interface ReceiverRow {
  person_id: string
  address: string
  endpoint_hash: string
  is_on: boolean
  quiet_from: number | null
  quiet_to: number | null
  quiet_zone: string | null
  now: Date
  project: string | null
  channel_id: string | null
  channel: string | null
  is_archived: boolean | null
  is_muted: boolean | null
  is_count: boolean
  title: string | null
  description: string | null
  icon: string | null
  is_hidden: boolean | null
}

/** The devices of deliveries, in their order; undefined for what is gone, or where nobody is signed in any more. */
export async function findReceivers(
  sql: Queryable,
  targets: readonly Target[],
): Promise<(ReceiverRow | undefined)[]> {
  const rows = await sql<(ReceiverRow & { ord: number })[]>`
    select
      t.ord::int as ord, r.person_id, r.address, r.endpoint_hash, r.is_on, r.quiet_from, r.quiet_to, r.quiet_zone,
      clock_timestamp() as now, r.project, r.channel_id, r.channel, r.is_archived, r.title, r.description, r.icon,
      r.is_hidden, r.is_muted, r.is_count
    from unnest(
        ${toArray(targets.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(targets.map(({ eventId }) => eventId))}::uuid[],
        ${toArray(targets.map(({ targetId }) => targetId))}::uuid[]
      ) with ordinality as t (project_id, event_id, id, ord)
      cross join lateral (
        select
          d.person_id, d.address, encode(d.endpoint_hash, 'hex') as endpoint_hash, d.is_on,
          d.quiet_from, d.quiet_to, d.quiet_zone,
          e.project, e.channel_id, e.channel, e.is_archived, e.title, e.description, e.icon, e.is_hidden,
          is_muted(t.project_id, e.channel_id, d.person_id) as is_muted,
          exists (
            select
            from delivery_records r
            where r.project_id = t.project_id and r.event_id = t.event_id and r.kind = 'push'
              and r.target_id = d.id and r.state = 'withheld' and r.reason = ${WITHHELD.collapsed}
          ) as is_count
        from push_subscriptions d
          join sessions s on s.id = d.session_id and not ${isExpired(sql)}
          left join lateral (
            select
              p.name as project, c.id as channel_id, c.name as channel, c.is_archived, v.title, v.description, v.icon,
              v.deleted_at is not null as is_hidden
            from projects p
              join organizations o on o.id = p.organization_id and o.deleted_at is null
              join memberships m on m.organization_id = o.id and m.person_id = d.person_id
              join events v on v.project_id = p.id and v.id = t.event_id
              join channels c on c.project_id = v.project_id and c.id = v.channel_id
            where p.id = t.project_id and p.deleted_at is null
          ) e on true
        where d.id = t.id
        -- Keeps this a look-up for each.
        offset 0
      ) r
  `
  return toPlaces(rows, targets.length)
}

/** A device with its address opened. Throws an `Unreadable` where it cannot be. */
export function toReceiver(row: ReceiverRow, target: Target, secrets: Secrets): Receiver {
  const { targetId } = target
  return {
    id: targetId,
    personId: row.person_id,
    address: openAddress(secrets, targetId, row.address),
    endpointHash: row.endpoint_hash,
    event: toEvent(row, target),
    isHidden: row.is_hidden ?? false,
    withheld: findReason(row),
    isCount: row.is_count,
    nowMs: row.now.getTime(),
  }
}

/** What a burst counts by now, which is under way from here on. Undefined when it has ended long ago. */
export async function takeCount(
  sql: Queryable,
  { projectId, channelId, personId }: { projectId: string; channelId: string; personId: string },
): Promise<{ count: number; burstAtMs: number } | undefined> {
  const [row] = await sql<{ collapsed: number; burst_at: Date }[]>`
    update push_bursts set summary_at = null
    where project_id = ${projectId} and channel_id = ${channelId} and person_id = ${personId}
      and collapsed > 0
    returning collapsed, burst_at
  `
  return row && { count: row.collapsed, burstAtMs: row.burst_at.getTime() }
}

function toEvent(row: ReceiverRow, { projectId, eventId }: Target): ToldEvent | undefined {
  const { project, channel_id: channelId, channel, title, description, icon } = row
  if (project === null || channelId === null || channel === null || title === null) return undefined
  return { projectId, eventId, project, channelId, channel, title, description, icon }
}

function findReason(row: ReceiverRow): string | undefined {
  if (!row.is_on) return WITHHELD.off
  if (row.is_archived) return WITHHELD.archived
  if (row.is_muted) return WITHHELD.muted
  const { quiet_from: from, quiet_to: to, quiet_zone: timeZone, now } = row
  if (from === null || to === null || timeZone === null) return undefined
  return isQuiet({ from, to, timeZone }, now) ? WITHHELD.quiet : undefined
}

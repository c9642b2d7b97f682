import { isExpired } from '../../access/guard/sessions.ts'
import { toId } from '../../base/ids.ts'
import { toArray, alignRows } from '../../database/arrays.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import { openAddress, type PushAddress } from './address.ts'
import { WITHHELD_REASONS } from './dispatch.ts'
import type { PushEvent } from './payload.ts'
import type { Mute } from './subscription-schema.ts'
import { quietUntil, type QuietHours } from './quiet-hours.ts'

/** A device as the sender needs it. Ids are uuids. */
export interface PushTarget {
  id: string
  accountId: string
  address: PushAddress
  /** SHA-256 of the endpoint in hex. A change shows that the browser has subscribed again. */
  endpointHash: string
  /** Undefined if the event was permanently deleted, or if the account is no longer a member. */
  event: PushEvent | undefined
  /** Undefined if `event` is. */
  organizationId: string | undefined
  /** True if the event was deleted and can still be restored. */
  isHidden: boolean
  /** The reason why the push is withheld; undefined if it is not. */
  withheld: string | undefined
  /** True if the push is the summary of a burst. */
  isSummary: boolean
  /** How often the push is repeated; null if it is not, or not again. */
  repeatMinutes: number | null
  quietHours: QuietHours[]
  /** True if one push after quiet hours says what they withheld. */
  hasQuietSummary: boolean
  /** The current time, by the clock of the database. */
  nowMs: number
}

/** The uuids of a delivery. */
export interface PushTargetId {
  projectId: string
  eventId: string
  targetId: string
}

/** A device with a sealed address. Columns of the event are null if `event` is. */
export interface SealedPushTarget extends Pick<
  PushTarget,
  'accountId' | 'endpointHash' | 'isSummary' | 'repeatMinutes' | 'quietHours' | 'hasQuietSummary'
> {
  address: string
  now: Date
  isOn: boolean
  isMuted: boolean
  organizationId: string | null
  lacksFactor: boolean | null
  isArchived: boolean | null
  isAcknowledged: boolean | null
  isSilenced: boolean | null
  isHidden: boolean | null
  letsCriticalThrough: boolean | null
  mutes: Mute[]
  event: Omit<PushEvent, 'projectId' | 'eventId'> | null
}

/** The state of a device that decides whether it gets a push now. */
export type DeviceState = Pick<
  SealedPushTarget,
  | 'isAcknowledged'
  | 'isArchived'
  | 'isMuted'
  | 'isOn'
  | 'isSilenced'
  | 'lacksFactor'
  | 'letsCriticalThrough'
  | 'mutes'
  | 'now'
  | 'quietHours'
> & { event: Pick<PushEvent, 'level'> | null }

/**
 * Returns the devices of deliveries, in their order. Undefined for a device that was removed or
 * whose session has expired.
 */
export async function findPushTargets(
  sql: Queryable,
  ids: readonly PushTargetId[],
): Promise<(SealedPushTarget | undefined)[]> {
  const rows = await sql<(SealedPushTarget & { ord: number })[]>`
    select
      t.ord::int as ord, r.account_id as "accountId", r.address, r.endpoint_hash as "endpointHash",
      clock_timestamp() as now, r.is_on as "isOn", r.is_muted as "isMuted", r.is_archived as "isArchived",
      r.organization_id as "organizationId", r.lacks_factor as "lacksFactor", r.is_hidden as "isHidden", r.is_summary as "isSummary",
      coalesce(r.is_acknowledged, false) as "isAcknowledged", r.is_silenced and not r.is_summary as "isSilenced", r.repeat_minutes as "repeatMinutes",
      r.quiet_hours as "quietHours", r.has_quiet_summary as "hasQuietSummary", r.lets_critical_through as "letsCriticalThrough", r.mutes, r.event
    from unnest(
        ${toArray(ids.map(({ projectId }) => projectId))}::uuid[],
        ${toArray(ids.map(({ eventId }) => eventId))}::uuid[],
        ${toArray(ids.map(({ targetId }) => targetId))}::uuid[]
      ) with ordinality as t (project_id, event_id, id, ord)
      cross join lateral (
        select
          d.account_id, d.address, encode(d.endpoint_hash, 'hex') as endpoint_hash, d.is_on, d.lets_critical_through, d.mutes,
          coalesce(d.quiet_hours, a.quiet_hours, '[]') as quiet_hours, d.has_quiet_summary,
          e.organization_id, e.lacks_factor, e.event, e.is_archived, e.is_hidden, e.is_acknowledged, e.is_silenced, e.repeat_minutes,
          n.is_muted and not exists (
            select
            from view_pushes w
              join view_bells b
                on b.project_id = w.project_id and b.view_id = w.view_id and b.account_id = w.account_id
            where w.project_id = t.project_id and w.event_id = t.event_id and w.account_id = d.account_id
          ) as is_muted,
          exists (
            select
            from delivery_records r
            where r.project_id = t.project_id and r.event_id = t.event_id and r.kind = 'push'
              and r.target_id = d.id and r.state = 'withheld' and r.reason = ${WITHHELD_REASONS.collapsed}
          ) as is_summary
        from push_subscriptions d
          join accounts a on a.id = d.account_id
          join sessions s on s.id = d.session_id and not ${isExpired(sql)}
          left join lateral (
            select
              o.id as organization_id,
              lacks_second_factor(o.requires_second_factor, s.is_multi_factor) as lacks_factor, c.id as channel_id, c.is_archived, v.deleted_at is not null as is_hidden,
              case when v.thread_seq is not null or v.level = 3 or r.escalation is not null then exists (
                select from current_acknowledgement(p.id, coalesce(v.thread_seq, v.seq)) k where k.at >= v.created_at
              ) end as is_acknowledged,
              -- The end of a silence tells of threads that fire. Other events were before it.
              exists (select from thread_by_seq(p.id, v.thread_seq) h where h.state = 3 and h.severity is not null)
                and is_silenced(
                  project => p.id, channel => c.id,
                  -- An event that speaks for a storm tells of other threads, too.
                  thread_key => case when v.telling in (4, 5) then null else v.thread end, event_thread_seq => v.thread_seq
                ) as is_silenced,
              -- The last push within the two hours is kept for a phone that is off.
              case when v.level = 3 and is_alarm(telling => v.telling, level => v.level, state => v.state, escalation => r.escalation)
                and now() < v.created_at + interval '2 hours' - r.minutes * interval '1 minute' then r.minutes end as repeat_minutes,
              json_build_object(
                'project', p.name, 'channelId', c.id, 'channel', c.name, 'title', v.title,
                'actions', case when v.thread_seq is not null then (
                  select q.actions from questions q
                  where q.project_id = p.id and q.id = v.id and q.ended_at is null and q.expires_at > now()
                ) end,
                'seq', v.seq, 'description', v.description, 'icon', v.icon, 'level', level_name(v.level), 'url', v.url,
                'isRepeated', v.level = 3 and was_pushed(p.id, array[v.id], d.id) is not distinct from true,
                'thread', case when v.thread_seq is not null then push_thread(
                  project => p.id, event_id => v.id, event_seq => v.seq, event_thread_seq => v.thread_seq,
                  event_state => v.state, event_level => v.level, event_telling => v.telling,
                  event_at => v.occurred_at, created => v.created_at, device => d.id, account => d.account_id
                ) end
              ) as event
            from projects p
              join organizations o on o.id = p.organization_id and o.deleted_at is null
              join memberships m on m.organization_id = o.id and m.account_id = d.account_id
              cross join lateral event_by_id(p.id, t.event_id) v
              cross join lateral channel_by_id(v.project_id, v.channel_id) c
              cross join lateral (
                select x as escalation, coalesce((x ->> 'repeatMinutes')::int, 5) as minutes
                from escalation_of(v.project_id, v.channel_id) x
              ) r
            where p.id = t.project_id and p.deleted_at is null
          ) e on true
          cross join lateral effective_notification_settings(t.project_id, e.channel_id, d.account_id) n
        where d.id = t.id
        -- Keeps Postgres from turning the lookups into one join.
        offset 0
      ) r
  `
  return alignRows(rows, ids.length)
}

/**
 * Opens the address of a device. Throws `UnreadableSecret` if it was sealed with another
 * APP_SECRET.
 */
export function openPushTarget(
  row: SealedPushTarget,
  { projectId, eventId, targetId }: PushTargetId,
  secrets: Pick<Secrets, 'open'>,
): PushTarget {
  // A summary is about a burst.
  const event = row.event && row.isSummary ? { ...row.event, thread: null } : row.event
  const reason = event?.thread?.withheld
  return {
    id: targetId,
    accountId: row.accountId,
    address: openAddress(secrets, targetId, row.address),
    endpointHash: row.endpointHash,
    event: event ? { ...event, projectId, eventId } : undefined,
    organizationId: row.organizationId ?? undefined,
    isHidden: row.isHidden ?? false,
    withheld: reason
      ? WITHHELD_REASONS[reason]
      : findReason(row, { projectId, channelId: event?.channelId }),
    isSummary: row.isSummary,
    repeatMinutes: row.repeatMinutes,
    quietHours: row.quietHours,
    hasQuietSummary: row.hasQuietSummary,
    nowMs: row.now.getTime(),
  }
}

/**
 * Returns how many events of a burst are collapsed so far, and marks its summary as sent. Another
 * summary counts the events that follow. Undefined if the burst is over.
 */
export async function takeBurstCount(
  sql: Queryable,
  { projectId, channelId, accountId }: { projectId: string; channelId: string; accountId: string },
): Promise<{ count: number; burstAtMs: number } | undefined> {
  const [row] = await sql<{ collapsed: number; burst_at: Date }[]>`
    update push_bursts set summary_at = null
    where project_id = ${projectId} and channel_id = ${channelId} and account_id = ${accountId}
      and collapsed > 0
    returning collapsed, burst_at
  `
  return row && { count: row.collapsed, burstAtMs: row.burst_at.getTime() }
}

/** Returns why a device gets no push of an event now; undefined if it does. */
export function findReason(
  {
    lacksFactor,
    isAcknowledged,
    isSilenced,
    isOn,
    isArchived,
    isMuted,
    mutes,
    quietHours,
    letsCriticalThrough,
    event,
    now,
  }: DeviceState,
  { projectId, channelId }: { projectId: string; channelId: string | undefined },
): string | undefined {
  if (isAcknowledged) return WITHHELD_REASONS.acknowledged
  if (lacksFactor) return WITHHELD_REASONS.secondFactor
  if (!isOn) return WITHHELD_REASONS.off
  if (isArchived) return WITHHELD_REASONS.archived
  if (isSilenced) return WITHHELD_REASONS.silenced
  if (letsCriticalThrough && event?.level === 'critical') return undefined
  if (isMuted) return WITHHELD_REASONS.muted
  const ids = [toId('prj', projectId), ...(channelId ? [toId('chn', channelId)] : [])]
  const isCurrent = ({ until }: Mute) => until === null || Date.parse(until) > now.getTime()
  if (mutes.some(one => ids.includes(one.id) && isCurrent(one))) return WITHHELD_REASONS.mutedHere
  return quietUntil(quietHours, now) ? WITHHELD_REASONS.quiet : undefined
}

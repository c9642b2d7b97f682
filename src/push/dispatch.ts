import { isExpired } from '../accounts/sessions.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import type { Runs } from '../outbox/kind.ts'
import { WITHHELD } from './reasons.ts'

/** So many pushes of a channel in so long a time; the rest become one that counts them. */
const BURST = 10
const BURST_S = 60
/** How long the count gathers before it is pushed, or pushed anew. */
const GATHER_S = 5
/** After this time a count that was due is not waited for: what was to push it may be gone. */
const LOST_S = 60

/**
 * Whether a member has a device. Where nobody has one nothing is written of an event, not even that: it would cost as
 * much as the event itself, and `explainSilence` knows it anyway.
 */
export function hasDevices(sql: Queryable): Fragment {
  return sql`exists (
    select
    from projects p
      join memberships m on m.organization_id = p.organization_id
      join push_subscriptions d on d.person_id = m.person_id
      join sessions s on s.id = d.session_id and not ${isExpired(sql)}
    where p.id = c.project_id
  )`
}

/**
 * Writes a delivery for each device of each member that is to be told of an event, and a record for those that are not,
 * with the reason; returns how many deliveries. Beyond ten of a channel in a minute one push to each device counts the
 * rest: that of the last event, a little later, so that the next ones are in it.
 */
export async function dispatchPushes(tx: Tx, runs: Runs): Promise<number> {
  const { projectIds, fromSeqs, toSeqs } = runs
  // Whoever pushes a count marks it as under way: either they see these events in it, or we see that they have begun.
  await tx`
    select from push_bursts
    where project_id = any(${projectIds}::uuid[]) and summary_at is not null
    order by project_id, channel_id, person_id
    for no key update
  `
  const [{ count }] = await tx<[{ count: number }]>`
    with reached as materialized (
      select r.project_id, r.from_seq, r.to_seq, p.organization_id
      from unnest(${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[])
          as r (project_id, from_seq, to_seq)
        join projects p on p.id = r.project_id
    ), fresh as materialized (
      select
        e.project_id, e.id, e.seq, e.created_at, e.channel_id, r.organization_id,
        case
          when not e.notify then ${WITHHELD.notifyFalse}::text
          when c.is_archived then ${WITHHELD.archived}
          when e.occurred_at < e.created_at - interval '10 minutes' then ${WITHHELD.old}
        end as reason
      from reached r
        join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
        join channels c on c.project_id = e.project_id and c.id = e.channel_id
    ), devices as materialized (
      select f.project_id, d.id, d.person_id, d.is_on, date_trunc('milliseconds', d.created_at) as created_at
      from (select distinct project_id, organization_id from fresh where reason is null) f
        join memberships m on m.organization_id = f.organization_id
        join push_subscriptions d on d.person_id = m.person_id
        join sessions s on s.id = d.session_id and not ${isExpired(tx)}
    ), people as materialized (
      -- A row for each channel and each person with a device, and those devices in arrays: what comes after meets them
      -- once for each event.
      select
        d.project_id, f.channel_id, d.person_id, is_muted(d.project_id, f.channel_id, d.person_id) as is_muted,
        min(d.created_at) filter (where d.is_on) as since,
        array_agg(d.id) filter (where d.is_on) as on_ids,
        array_agg(d.created_at) filter (where d.is_on) as on_since,
        array_agg(d.id) filter (where not d.is_on) as off_ids,
        array_agg(d.created_at) filter (where not d.is_on) as off_since
      from (select distinct project_id, channel_id from fresh where reason is null) f
        join devices d on d.project_id = f.project_id
      group by d.project_id, f.channel_id, d.person_id
    ), rooms as materialized (
      select
        p.project_id, p.channel_id, p.person_id, p.is_muted, p.since, p.on_ids, p.on_since, p.off_ids, p.off_since,
        greatest(0, ${BURST} - (
          select count(*)
          from unnest(b.recent) as t (at)
          where t.at > now() - make_interval(secs => ${BURST_S})
        ))::int as room,
        coalesce(b.summary_at > now() - make_interval(secs => ${LOST_S}), false) as is_counted
      from people p
        left join push_bursts b
          on b.project_id = p.project_id and b.channel_id = p.channel_id and b.person_id = p.person_id
    ), aimed as materialized (
      select
        f.project_id, f.id, f.seq, f.created_at, f.channel_id, p.person_id, p.is_muted, p.room, p.is_counted,
        p.on_ids, p.on_since, p.off_ids, p.off_since,
        not p.is_muted and coalesce(p.since <= f.created_at, false) as is_told
      from fresh f
        join rooms p on p.project_id = f.project_id and p.channel_id = f.channel_id
      where f.reason is null
    ), ranked as materialized (
      select
        a.project_id, a.id, a.created_at, a.channel_id, a.person_id, a.room, a.is_counted, a.on_ids, a.on_since,
        row_number() over (partition by a.project_id, a.channel_id, a.person_id order by a.seq) as place,
        count(*) over (partition by a.project_id, a.channel_id, a.person_id) as n
      from aimed a
      where a.is_told
    ), queued as (
      insert into outbox (project_id, event_id, kind, target_id, available_at)
      select
        r.project_id, r.id, 'push', d.id,
        case when r.place <= r.room then now() else now() + make_interval(secs => ${GATHER_S}) end
      from ranked r
        cross join lateral unnest(r.on_ids, r.on_since) as d (id, since)
      where (r.place <= r.room or r.place = r.n and not r.is_counted) and d.since <= r.created_at
      on conflict (project_id, event_id, kind, target_id) do nothing
      returning 1
    ), withheld as (
      select f.project_id, f.id, null::uuid as target_id, f.reason
      from fresh f
      where f.reason is not null
      union all
      select f.project_id, f.id, null, ${WITHHELD.noDevice}
      from fresh f
      where f.reason is null
        and not exists (
          select from devices d where d.project_id = f.project_id and d.created_at <= f.created_at
        )
      union all
      select a.project_id, a.id, d.id, ${WITHHELD.muted}
      from aimed a
        cross join lateral unnest(a.on_ids, a.on_since) as d (id, since)
      where a.is_muted and d.since <= a.created_at
      union all
      select a.project_id, a.id, d.id, ${WITHHELD.off}
      from aimed a
        cross join lateral unnest(a.off_ids, a.off_since) as d (id, since)
      where d.since <= a.created_at
      union all
      -- That of the count, too: so whoever sends it knows what it is.
      select r.project_id, r.id, d.id, ${WITHHELD.collapsed}
      from ranked r
        cross join lateral unnest(r.on_ids, r.on_since) as d (id, since)
      where r.place > r.room and d.since <= r.created_at
    ), recorded as (
      insert into deliveries (project_id, event_id, kind, target_id, state, reason)
      select w.project_id, w.id, 'push', w.target_id, 'withheld', w.reason
      from withheld w
      on conflict (project_id, event_id, kind, target_id) do nothing
    ), bursts as (
      insert into push_bursts as b (
        project_id, channel_id, person_id, recent, burst_at, collapsed, collapsed_at, summary_at
      )
      select
        c.project_id, c.channel_id, c.person_id, array_fill(now(), array[least(c.room, c.n)::int]),
        case when c.n > c.room then now() end, greatest(0, c.n - c.room),
        case when c.n > c.room then now() end,
        case when c.n > c.room then now() + make_interval(secs => ${GATHER_S}) end
      from ranked c
      where c.place = 1
      order by c.project_id, c.channel_id, c.person_id
      on conflict (project_id, channel_id, person_id) do update set
        recent = (b.recent || excluded.recent)[
          greatest(1, cardinality(b.recent) + cardinality(excluded.recent) - ${BURST - 1}::int):
        ],
        -- A burst is over when a minute has passed without one more.
        burst_at = case
          when b.collapsed_at > now() - make_interval(secs => ${BURST_S}) then b.burst_at
          else coalesce(excluded.burst_at, b.burst_at)
        end,
        collapsed = case
          when excluded.collapsed = 0 or b.collapsed_at > now() - make_interval(secs => ${BURST_S})
            then b.collapsed
          else 0
        end + excluded.collapsed,
        collapsed_at = coalesce(excluded.collapsed_at, b.collapsed_at),
        summary_at = case
          when b.summary_at > now() - make_interval(secs => ${LOST_S}) then b.summary_at
          else excluded.summary_at
        end,
        touched_at = now()
    )
    select count(*)::int as count from queued
  `
  return count
}

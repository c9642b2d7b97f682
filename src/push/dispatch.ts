import { isExpired } from '../accounts/sessions.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import type { Runs } from '../outbox/kind.ts'
import { checksPlannedOnce } from '../outbox/settings.ts'
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
        cross join ${checksPlannedOnce(tx)}
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
      select
        f.project_id, d.id, d.person_id, d.is_on,
        -- Whoever came in the future came before the clock went back.
        case
          when d.created_at > now() + interval '5 s' then '-infinity'
          else date_trunc('milliseconds', d.created_at)
        end as created_at
      from (select distinct project_id, organization_id from fresh where reason is null) f
        join memberships m on m.organization_id = f.organization_id
        join push_subscriptions d on d.person_id = m.person_id
        join sessions s on s.id = d.session_id and not ${isExpired(tx)}
    ), told as materialized (
      select
        f.project_id, f.id, f.channel_id, f.created_at,
        row_number() over (partition by f.project_id, f.channel_id order by f.seq) as nth
      from fresh f
      where f.reason is null
    ), runs as materialized (
      select t.project_id, t.channel_id, count(*) as n, min(t.created_at) as first_at
      from told t
      group by t.project_id, t.channel_id
    ), people as materialized (
      select
        r.project_id, r.channel_id, r.n, r.first_at, d.person_id,
        is_muted(r.project_id, r.channel_id, d.person_id) as is_muted,
        min(d.created_at) filter (where d.is_on) as since, max(d.created_at) <= r.first_at as is_old,
        array_agg(d.id) as ids, array_agg(d.is_on) as are_on, array_agg(d.created_at) as sinces
      from runs r
        join devices d on d.project_id = r.project_id
      group by r.project_id, r.channel_id, r.n, r.first_at, d.person_id
    ), rooms as materialized (
      -- How many of the run each person is told of. A log is in the order of time: those are its last ones.
      select
        p.project_id, p.channel_id, p.n, p.person_id, p.is_muted, p.is_old, p.ids, p.are_on, p.sinces,
        case
          when p.is_muted or p.since is null then 0
          when p.since <= p.first_at then p.n
          else (
            select count(*)
            from told t
            where t.project_id = p.project_id and t.channel_id = p.channel_id and t.created_at >= p.since
          )
        end as told,
        greatest(0, ${BURST} - (
          select count(*)
          from unnest(b.recent) as t (at)
          where t.at > now() - make_interval(secs => ${BURST_S})
        ))::int as room,
        coalesce(b.summary_at > now() - make_interval(secs => ${LOST_S}), false) as is_counted
      from people p
        left join push_bursts b
          on b.project_id = p.project_id and b.channel_id = p.channel_id and b.person_id = p.person_id
    ), crowds as materialized (
      -- People who are told of the same events, for the same reasons not of others: what comes after meets them at once.
      -- Whoever got a device in the middle of it is one of their own.
      select
        p.project_id, p.channel_id, p.n, p.told, p.room, p.is_muted, p.is_counted, p.is_old,
        array_agg(d.id) filter (where d.is_on) as on_ids,
        array_agg(d.since) filter (where d.is_on) as on_since,
        array_agg(d.id) filter (where not d.is_on) as off_ids,
        array_agg(d.since) filter (where not d.is_on) as off_since
      from rooms p
        cross join lateral unnest(p.ids, p.are_on, p.sinces) as d (id, is_on, since)
      group by
        p.project_id, p.channel_id, p.n, p.told, p.room, p.is_muted, p.is_counted, p.is_old,
        case when not p.is_old then p.person_id end
    ), aimed as materialized (
      select
        t.project_id, t.id, t.created_at, t.nth = c.n as is_last, t.nth - (c.n - c.told) as place,
        c.room, c.is_muted, c.is_counted, c.is_old, c.on_ids, c.on_since, c.off_ids, c.off_since
      from told t
        join crowds c on c.project_id = t.project_id and c.channel_id = t.channel_id
    ), queued as (
      insert into outbox (project_id, event_id, kind, target_id, available_at)
      select
        a.project_id, a.id, 'push', d.id,
        case when a.place <= a.room then now() else now() + make_interval(secs => ${GATHER_S}) end
      from aimed a
        cross join lateral unnest(a.on_ids, a.on_since) as d (id, since)
      where not a.is_muted and a.place > 0 and (a.place <= a.room or a.is_last and not a.is_counted)
        and d.since <= a.created_at
      on conflict (project_id, event_id, kind, target_id) do nothing
      returning 1
    ), withheld_from as (
      select a.project_id, a.id, a.created_at, a.is_old, a.on_ids as ids, a.on_since as sinces,
        case when a.is_muted then ${WITHHELD.muted}::text else ${WITHHELD.collapsed} end as reason
      from aimed a
      -- Those of the count, too: so whoever sends it knows what it is.
      where a.on_ids is not null and (a.is_muted or a.place > a.room)
      union all
      select a.project_id, a.id, a.created_at, a.is_old, a.off_ids, a.off_since, ${WITHHELD.off}
      from aimed a
      where a.off_ids is not null
    ), kept as (
      insert into withheld (project_id, event_id, kind, reason, target_ids)
      select w.project_id, w.id, 'push', w.reason, l.ids
      from withheld_from w
        cross join lateral (
          select case
            when w.is_old then w.ids
            else array(
              select d.id from unnest(w.ids, w.sinces) as d (id, since) where d.since <= w.created_at
            )
          end as ids
        ) l
      where cardinality(l.ids) > 0
    ), recorded as (
      insert into deliveries (project_id, event_id, kind, state, reason)
      select f.project_id, f.id, 'push', 'withheld', coalesce(f.reason, ${WITHHELD.noDevice})
      from fresh f
      where f.reason is not null
        or not exists (
          select from devices d where d.project_id = f.project_id and d.created_at <= f.created_at
        )
      on conflict (project_id, event_id, kind, target_id) do nothing
    ), bursts as (
      insert into push_bursts as b (
        project_id, channel_id, person_id, recent, burst_at, collapsed, collapsed_at, summary_at
      )
      select
        c.project_id, c.channel_id, c.person_id, array_fill(now(), array[least(c.room, c.told)::int]),
        case when c.told > c.room then now() end, greatest(0, c.told - c.room),
        case when c.told > c.room then now() end,
        case when c.told > c.room then now() + make_interval(secs => ${GATHER_S}) end
      from rooms c
      where c.told > 0
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

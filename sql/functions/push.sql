-- Keeps the settings of a subscription with its browser, however the subscription ends.
create or replace function keep_push_settings() returns trigger
language plpgsql
as $$
begin
  update known_devices set
    push_settings = jsonb_build_object(
      'label', old.label,
      'isOn', old.is_on,
      'quiet', jsonb_build_array(old.quiet_from, old.quiet_to, old.quiet_zone),
      'quietHours', old.quiet_hours,
      'mutes', old.mutes,
      'hasQuietSummary', old.has_quiet_summary,
      'letsCriticalThrough', old.lets_critical_through
    )
  where account_id = old.account_id and id = old.browser_id;
  return null;
end
$$;

create or replace trigger push_subscriptions_keep_settings after delete on push_subscriptions
for each row when (old.browser_id is not null) execute function keep_push_settings();

-- Returns the settings that apply to an account in a channel now. Each is that of the channel; if
-- there is none, that of the project. It returns a table, so that Postgres can inline it into the
-- statement.
create or replace function effective_notification_settings(project uuid, channel uuid, account uuid)
returns table (is_muted boolean, collapses boolean)
language sql stable as $$
  select
    coalesce((
      select n.state = 'mute'
      from notification_settings n
      where n.project_id = project and n.account_id = account
        and (n.channel_id = channel or n.channel_id is null)
        and n.state is not null
        and (n.mute_until is null or n.mute_until > now())
      order by n.channel_id nulls last
      limit 1
    ), false),
    coalesce((
      select n.collapse
      from notification_settings n
      where n.project_id = project and n.account_id = account
        and (n.channel_id = channel or n.channel_id is null)
        and n.collapse is not null
      order by n.channel_id nulls last
      limit 1
    ), true)
$$;

-- Returns true if an account has muted a channel now.
create or replace function is_muted(project uuid, channel uuid, account uuid) returns boolean
language sql stable as $$
  select s.is_muted from effective_notification_settings(project, channel, account) s
$$;

-- Returns the devices of an organization's members whose sessions have not expired.
create or replace function subscribed_devices(organization uuid)
returns table (id uuid, account_id uuid, is_on boolean, subscribed_at timestamptz)
language sql stable as $$
  select
    d.id, d.account_id, d.is_on,
    case
      -- A created_at in the future means that the clock was set back.
      when d.created_at > now() + interval '5 s' then '-infinity'
      else date_trunc('milliseconds', d.created_at)
    end
  from memberships m
    join push_subscriptions d on d.account_id = m.account_id
    join sessions s on s.id = d.session_id
  where m.organization_id = organization
    and not is_session_expired(s.is_installed and d.is_proven, s.created_at, s.last_seen_at)
$$;

-- Returns how many pushes of a channel an account can get now: 10 in 60 seconds, minus the recent
-- ones.
create or replace function burst_capacity(recent timestamptz[]) returns table (capacity int)
language sql stable as $$
  select greatest(0, 10 - count(*))::int
  from unnest(recent) as r (at)
  where r.at between now() - interval '60 s' and now()
$$;

-- Returns the events with from_seq < seq <= to_seq of each project, and why nobody is notified of
-- some of them. Each row has those of one level, from 0 for low to 3 for critical. Updates of
-- threads and notifications of storms replace others, so they have at least the level 2: they are
-- in no burst. `alarms` are the ids of those that start timers.
create or replace function push_events_by_level(project_ids uuid[], from_seqs bigint[], to_seqs bigint[])
returns table (level smallint, events push_event[], alarms uuid[])
language sql stable as $$
  select n.level, array_agg(n.event), array_agg((n.event).id) filter (where n.is_alarm)
  from (
    select
      f.level, f.is_alarm and coalesce(f.reason, 'staged') = 'staged' as is_alarm,
      row(
        f.project_id, f.organization_id, f.channel_id, f.id, f.created_at, f.reason,
        (row_number() over (partition by f.project_id, f.channel_id, f.reason is null, f.level order by f.seq desc) - 1)::int
      )::push_event as event
    from (
      select
        e.project_id, p.organization_id, e.channel_id, e.id, e.created_at, e.seq,
        case when e.telling in (1, 4, 5) then greatest(e.level, 2::smallint) else coalesce(e.level, 1::smallint) end as level,
        case
          when not e.notify then 'notifyFalse'
          when e.level = 0 then 'low'
          when c.is_archived then 'archived'
          when e.occurred_at < e.created_at - interval '10 minutes' then 'old'
          when e.telling = 2 then 'notOpen'
          -- An event that speaks for a storm tells of other threads, too.
          when q.has_silences and is_silenced(
            project => e.project_id,
            channel => e.channel_id,
            thread_key => case when e.telling in (4, 5) then null else e.thread end,
            event_thread_seq => e.thread_seq
          ) then 'silenced'
          when e.telling = 3 then 'storm'
          when is_alarm(telling => e.telling, level => e.level, state => e.state, escalation => x.escalation) and x.escalation -> 'stages' -> 0 is not null
            and not exists (select from current_acknowledgement(e.project_id, coalesce(e.thread_seq, e.seq)))
            then 'staged'
        end as reason,
        is_alarm(telling => e.telling, level => e.level, state => e.state, escalation => x.escalation) as is_alarm
      from unnest(project_ids, from_seqs, to_seqs) as r (project_id, from_seq, to_seq)
        join projects p on p.id = r.project_id
        cross join lateral (
          select
            exists (select from silences s where s.project_id = r.project_id) as has_silences,
            exists (select from escalations s where s.project_id = r.project_id) as has_escalations
          -- Keeps Postgres from looking for each event.
          offset 0
        ) q
        -- Only the key of events needs no sort for this order.
        cross join lateral (
          select e.*
          from events_between(r.project_id, r.from_seq, r.to_seq) e
          order by e.seq
        ) e
        cross join lateral channel_by_id(e.project_id, e.channel_id) c
        cross join lateral (
          select case when q.has_escalations then escalation_of(e.project_id, e.channel_id) end as escalation
        ) x
    ) f
  ) n
  group by n.level
$$;

-- Returns what each account with a device gets of each channel. A muted channel gives nothing. Any
-- other gives as many individual pushes as the burst still allows.
create or replace function find_push_recipients(events push_event[]) returns setof push_recipient
language sql stable as $$
  with channel_events as materialized (
    select e.project_id, e.organization_id, e.channel_id, count(*)::int as n, min(e.created_at) as first_event_at
    from unnest(events) e
    where e.reason is null
    group by e.project_id, e.organization_id, e.channel_id
  ), subscribers as materialized (
    select
      o.organization_id, d.account_id, min(d.subscribed_at) filter (where d.is_on) as subscribed_at,
      array_agg(d.id) as ids, array_agg(d.is_on) as states, array_agg(d.subscribed_at) as subscribed_ats
    from (select distinct organization_id from channel_events) o
      cross join lateral subscribed_devices(o.organization_id) d
    group by o.organization_id, d.account_id
  ), settings as materialized (
    select
      c.project_id, c.channel_id, c.n, c.first_event_at, s.account_id, s.subscribed_at, s.ids, s.states,
      s.subscribed_ats, n.is_muted, n.collapses
    from channel_events c
      join subscribers s on s.organization_id = c.organization_id
      cross join lateral effective_notification_settings(c.project_id, c.channel_id, s.account_id) n
  )
  select
    s.project_id, s.channel_id, s.account_id, s.is_muted, s.collapses, n.event_count,
    case when s.collapses then c.capacity else n.event_count end,
    -- An older summary may have been cancelled with its event.
    coalesce(b.summary_at between now() - interval '60 s' and now() + interval '60 s', false), s.first_event_at, s.ids, s.states, s.subscribed_ats
  from settings s
    left join push_bursts b
      on b.project_id = s.project_id and b.channel_id = s.channel_id and b.account_id = s.account_id
    cross join lateral burst_capacity(b.recent) c
    cross join lateral (
      select case
        when s.is_muted or s.subscribed_at is null then 0
        when s.subscribed_at <= s.first_event_at then s.n
        else (
          select count(*)::int
          from unnest(events) e
          where e.project_id = s.project_id and e.channel_id = s.channel_id and e.reason is null
            and e.created_at >= s.subscribed_at
        )
      end as event_count
    ) n
$$;

-- Does the same for events of the level high (2) or critical (3), which are in no burst. Critical
-- ones pass a mute on the devices that let them through.
create or replace function find_urgent_recipients(events push_event[], event_level smallint) returns setof push_recipient
language sql stable as $$
  select
    r.project_id, r.channel_id, r.account_id, d.is_muted, false, cardinality(events), cardinality(events), false,
    r.first_event_at, d.ids, d.states, d.subscribed_ats
  from find_push_recipients(events) r
    cross join lateral (
      select
        r.is_muted and not (event_level = 3 and coalesce(s.lets_critical_through, false)) as is_muted,
        array_agg(u.id) as ids, array_agg(u.is_on) as states, array_agg(u.subscribed_at) as subscribed_ats
      from unnest(r.device_ids, r.device_is_on, r.device_subscribed_at) as u (id, is_on, subscribed_at)
        left join push_subscriptions s on s.id = u.id
      group by 1
    ) d
$$;

-- Groups devices that get the same pushes, so that the cost of a burst does not grow with the
-- number of accounts.
create or replace function group_push_devices(recipients push_recipient[]) returns setof push_device_group
language sql stable as $$
  select
    r.project_id, r.channel_id, d.reason,
    case when d.reason is null then r.event_count end, case when d.reason is null then r.individual_count end,
    case when d.reason is null then r.has_summary end, d.subscribed_at, array_agg(d.id)
  from unnest(recipients) r
    cross join lateral (
      select
        u.id, case when u.subscribed_at > r.first_event_at then u.subscribed_at end as subscribed_at,
        case when not u.is_on then 'off' when r.is_muted then 'muted' end as reason
      from unnest(r.device_ids, r.device_is_on, r.device_subscribed_at) as u (id, is_on, subscribed_at)
    ) d
  group by 1, 2, 3, 4, 5, 6, 7
$$;

-- Enqueues a delivery for each event and device, up to the limit of the burst. Beyond the limit,
-- the delivery of the newest event becomes the summary. It is due 5 seconds later, so that it also
-- counts the next events. Returns the number of deliveries.
--
-- The functions that write have a generic plan. It also plans the checks of their foreign keys
-- once; planning them for each row would cost more than the rows. A generic plan does not know the
-- lengths of the arrays. It would join them by nested loops, so these are off.
create or replace function enqueue_pushes(events push_event[], device_groups push_device_group[]) returns int
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_nestloop = off
as $$
  with queued as (
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select
      e.project_id, e.id, 'push', d.id,
      case when g.event_count - e.newer <= g.individual_count then now() else now() + interval '5 s' end
    from unnest(device_groups) g
      join unnest(events) e
        on e.project_id = g.project_id and e.channel_id = g.channel_id and e.reason is null
      cross join unnest(g.device_ids) as d (id)
    where g.reason is null and e.newer < g.event_count
      and (g.event_count - e.newer <= g.individual_count or e.newer = 0 and not g.has_summary)
      and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
    on conflict (project_id, event_id, kind, target_id) do nothing
    returning 1
  )
  select count(*)::int from queued
$$;

-- Records the devices that events are withheld from. A delivery with such a record is a summary.
create or replace function record_withheld_pushes(events push_event[], device_groups push_device_group[], sentences jsonb)
returns void
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_nestloop = off
as $$
  insert into withheld_deliveries (project_id, event_id, kind, reason, target_ids)
  select e.project_id, e.id, 'push', sentences ->> coalesce(g.reason, 'collapsed'), g.device_ids
  from unnest(device_groups) g
    join unnest(events) e
      on e.project_id = g.project_id and e.channel_id = g.channel_id and e.reason is null
  where (g.reason is not null or g.event_count - e.newer > g.individual_count)
    and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
$$;

-- Records the events that nobody is notified of, for a reason of their own or because nobody had a
-- device. The reason itself stands in where 0.3.0 has no sentence for it.
create or replace function record_events_without_push(events push_event[], device_groups push_device_group[], sentences jsonb)
returns void
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
  insert into deliveries (project_id, event_id, kind, state, reason)
  select e.project_id, e.id, 'push', 'withheld', coalesce(sentences ->> coalesce(e.reason, 'noDevice'), e.reason)
  from unnest(events) e
  where e.reason is not null
    or not exists (
      select
      from unnest(device_groups) g
      where g.project_id = e.project_id and g.channel_id = e.channel_id
        and (g.subscribed_at is null or g.subscribed_at <= e.created_at)
    )
  on conflict (project_id, event_id, kind, target_id) do nothing
$$;

-- Adds the pushes of each account to its bursts, and counts the collapsed ones.
create or replace function count_bursts(recipients push_recipient[]) returns void
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
  insert into push_bursts as b (
    project_id, channel_id, account_id, recent, burst_at, collapsed, collapsed_at, summary_at
  )
  select
    r.project_id, r.channel_id, r.account_id, array_fill(now(), array[least(r.individual_count, r.event_count)]),
    case when r.event_count > r.individual_count then now() end, greatest(0, r.event_count - r.individual_count),
    case when r.event_count > r.individual_count then now() end,
    case when r.event_count > r.individual_count then now() + interval '5 s' end
  from unnest(recipients) r
  where r.event_count > 0 and r.collapses
  order by r.project_id, r.channel_id, r.account_id
  on conflict (project_id, channel_id, account_id) do update set
    recent = (b.recent || excluded.recent)[
      greatest(1, cardinality(b.recent) + cardinality(excluded.recent) - 9):
    ],
    -- A burst ends after 60 seconds without another collapsed push.
    burst_at = case
      when b.collapsed_at between now() - interval '60 s' and now() + interval '60 s' then b.burst_at
      else coalesce(excluded.burst_at, b.burst_at)
    end,
    collapsed = case
      when excluded.collapsed = 0 or b.collapsed_at between now() - interval '60 s' and now() + interval '60 s' then b.collapsed
      else 0
    end + excluded.collapsed,
    collapsed_at = coalesce(excluded.collapsed_at, b.collapsed_at),
    summary_at = case
      when b.summary_at between now() - interval '60 s' and now() + interval '60 s' then b.summary_at
      else excluded.summary_at
    end,
    touched_at = now()
$$;

-- Turns the events with from_seq < seq <= to_seq of each project into deliveries, and records the
-- pushes that are withheld. `sentences` contains the text of each reason. Returns the number of
-- deliveries.
create or replace function dispatch_pushes(project_ids uuid[], from_seqs bigint[], to_seqs bigint[], sentences jsonb) returns int
language plpgsql
as $$
declare
  events push_event[];
  event_level smallint;
  recipients push_recipient[];
  device_groups push_device_group[];
  alarms uuid[];
  total int := 0;
begin
  -- Sending a summary takes the same lock. So it either counts these events, or leaves them to
  -- another summary.
  perform from push_bursts b
    where b.project_id = any(project_ids) and b.summary_at is not null
    order by b.project_id, b.channel_id, b.account_id
    for no key update;
  for event_level, events, alarms in
    select p.level, p.events, p.alarms from push_events_by_level(project_ids, from_seqs, to_seqs) p
  loop
    if event_level > 1 then
      recipients := array(select r from find_urgent_recipients(events, event_level) r);
    else
      recipients := array(select r from find_push_recipients(events) r);
    end if;
    device_groups := array(select g from group_push_devices(recipients) g);
    perform record_events_without_push(events, device_groups, sentences);
    perform record_withheld_pushes(events, device_groups, sentences);
    perform count_bursts(recipients);
    total := total + enqueue_pushes(events, device_groups);
    if alarms is not null then
      perform start_timers(events, alarms);
    end if;
  end loop;
  return total;
end
$$;

-- Makes the rules of projects with new events look within a second. A step that has begun loses its
-- lease, because it may not have seen these events.
create or replace function wake_rules(project_ids uuid[]) returns void
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with sleeping as materialized (
    select o.id
    from unnest(project_ids) as w (project_id)
      join rules r on r.project_id = w.project_id and r.is_on
      join outbox o on (o.project_id, o.event_id, o.kind, o.target_id) = (r.project_id, r.id, 'timer', r.id)
    where o.available_at > now() + interval '1 s'
    order by o.id
    for update of o
  )
  update outbox o set available_at = now() + interval '1 s', token = null
  from sleeping s
  where o.id = s.id
$$;

-- Takes ranges of logs, and dispatches the pushes of their events. `has_bells` says whether a
-- project of them has a view with a bell.
create or replace function dispatch_push_ranges(project_ids uuid[], max_events int, sentences jsonb)
returns table (ranges json, count bigint, has_bells boolean)
language plpgsql
as $$
declare
  new_ranges event_range[] := array(select r from lock_event_ranges('push', project_ids) r);
  with_targets uuid[] := array(
    select f.project_id
    from unnest(new_ranges) f
    where exists (
      select
      from projects p
        cross join lateral subscribed_devices(p.organization_id)
      where p.id = f.project_id
    )
  );
  taken event_range[] := array(select r from take_ranges('push', new_ranges, with_targets, max_events) r);
  ids uuid[];
  from_seqs bigint[];
  to_seqs bigint[];
begin
  select array_agg(r.project_id), array_agg(r.from_seq), array_agg(r.to_seq) into ids, from_seqs, to_seqs
    from unnest(taken) r
    where r.has_targets;
  return query
    select
      array_to_json(taken),
      case when ids is null then 0 else dispatch_pushes(ids, from_seqs, to_seqs, sentences)::bigint end,
      exists (select from view_bells b where b.project_id = any(ids));
  -- It locks rows of the outbox, after the push_bursts and the new rows.
  if exists (select from unnest(new_ranges) f join rules r on r.project_id = f.project_id) then
    perform wake_rules(array(select f.project_id from unnest(new_ranges) f));
  end if;
end
$$;

-- Enqueues pushes for the events of a range that match a view, for the accounts that have its bell
-- on and had muted the channel. Others are notified anyway. Returns the number of deliveries.
--
-- It runs after dispatch_pushes, which has recorded these pushes as withheld. The records decide
-- which devices get a push, because mutes and settings of devices can have changed since. The
-- outcome of a delivery replaces such a record. Events of a storm have no such records. They are
-- pushed by themselves, within bursts, because what speaks for the storm may not match.
create or replace function dispatch_view_pushes(
  project uuid, view uuid, from_seq bigint, to_seq bigint, event_ids uuid[], sentences jsonb
) returns int
language plpgsql
as $$
declare
  event_level smallint;
  devices uuid[];
  events push_event[];
  recipients push_recipient[];
  device_groups push_device_group[];
  total int := 0;
begin
  -- A dispatch holds it, too. Each locks many bursts, in an order of its own. It also keeps another
  -- process from the same pushes.
  perform from delivery_cursors c where c.project_id = project and c.kind = 'push' for update;
  -- Most devices get the same events, and share a turn.
  for event_level, devices, events in
    with found as materialized (
      select
        case when m.reason is null then p.level else 1 end as level,
        m.project_id, m.organization_id, m.channel_id, m.id, m.created_at, m.newer, b.account_id,
        array_agg(r.target_id order by r.target_id) as device_ids
      from push_events_by_level(array[project], array[from_seq], array[to_seq]) p
        cross join lateral unnest(p.events) m
        cross join lateral (
          select r.target_id
          from delivery_records r
          where r.project_id = m.project_id and r.event_id = m.id and r.kind = 'push'
            and r.state = 'withheld' and r.reason = sentences ->> 'muted' and m.reason is null
          union all
          select o.id
          from view_bells w
            join push_subscriptions o on o.account_id = w.account_id
          where m.reason = 'storm' and w.project_id = project and w.view_id = view
            and is_muted(m.project_id, m.channel_id, w.account_id)
          -- Keeps Postgres from reading all records of the project for each device.
          offset 0
        ) r
        join push_subscriptions d on d.id = r.target_id
        join view_bells b on b.project_id = project and b.view_id = view and b.account_id = d.account_id
        join views v on v.project_id = b.project_id and v.id = b.view_id
      where m.id = any(event_ids) and coalesce(m.reason, 'storm') = 'storm'
        and (v.account_id is null or v.account_id = b.account_id)
        -- Another view can have the event, too.
        and not exists (
          select
          from view_pushes w
          where w.project_id = m.project_id and w.event_id = m.id and w.account_id = b.account_id
        )
      group by 1, 2, 3, 4, 5, 6, 7, 8
    ), added as (
      insert into view_pushes (project_id, event_id, account_id, view_id)
      select f.project_id, f.id, f.account_id, view
      from found f
    )
    select g.level, array_agg(d.id), g.events
    from (
      select
        n.level, n.device_ids,
        array_agg(
          row(n.project_id, n.organization_id, n.channel_id, n.id, n.created_at, null::text, n.newer)::push_event
          order by n.id
        ) as events
      from (
        select
          f.level, f.project_id, f.organization_id, f.channel_id, f.id, f.created_at, f.device_ids,
          (row_number() over (partition by f.device_ids, f.channel_id, f.level order by f.newer) - 1)::int as newer
        from found f
      ) n
      group by n.level, n.device_ids
    ) g
      cross join unnest(g.device_ids) as d (id)
    group by g.level, g.events
  loop
    recipients := array(
      select row(
          r.project_id, r.channel_id, r.account_id, false, r.collapses and event_level = 1, n.event_count,
          case when r.collapses and event_level = 1 then r.individual_count else n.event_count end,
          r.has_summary, r.first_event_at, d.ids, d.states, d.subscribed_ats
        )::push_recipient
      from find_push_recipients(events) r
        cross join lateral (
          select count(*)::int as event_count
          from unnest(events) e
          where e.channel_id = r.channel_id
        ) n
        cross join lateral (
          select array_agg(u.id) as ids, array_agg(u.is_on) as states, array_agg(u.subscribed_at) as subscribed_ats
          from unnest(r.device_ids, r.device_is_on, r.device_subscribed_at) as u (id, is_on, subscribed_at)
          where u.is_on and u.id = any(devices)
        ) d
      where d.ids is not null
    );
    device_groups := array(select g from group_push_devices(recipients) g);
    perform record_withheld_pushes(events, device_groups, sentences);
    perform count_bursts(recipients);
    total := total + enqueue_pushes(events, device_groups);
  end loop;
  return total;
end
$$;

-- Returns whether the push of one of these events to a device was accepted; null while one waits.
create or replace function was_pushed(project uuid, event_ids uuid[], device uuid) returns boolean
language sql stable as $$
  select case
    when exists (
      select
      from deliveries d
      where d.project_id = project and d.event_id = any(event_ids) and d.kind = 'push' and d.target_id = device
        and d.state = 'delivered'
    ) then true
    when not exists (
      select
      from outbox o
      where o.project_id = project and o.event_id = any(event_ids) and o.kind = 'push' and o.target_id = device
    ) then false
  end
$$;

-- Returns what a push says of the thread of an event, how long it waits, and the reason why a
-- device does not get it. It waits for the notification that it replaces. Silent updates and counts
-- wait for newer ones, and the second to fourth thread that begin to fire in a channel for a storm.
-- A thread that fires again waits for the end of five minutes, and is told if it still fires then.
-- `storm` is there if the event speaks for one. It counts up to 1,001 threads. An account with a
-- bell for the event hears of it in any case, and not of the storm.
create or replace function push_thread(
  project uuid, event_id uuid, event_seq bigint, event_thread_seq bigint, event_state smallint, event_level smallint,
  event_telling smallint, event_at timestamptz, created timestamptz, device uuid, account uuid
) returns json
language plpgsql stable
as $$
declare
  is_opening constant boolean := event_seq = event_thread_seq;
  is_by_bell constant boolean := exists (
    select from view_pushes w where w.project_id = project and w.event_id = push_thread.event_id and w.account_id = account
  );
  -- A created_at in the future means that the clock was set back. Nothing waits for it.
  age constant interval :=
    case when created < clock_timestamp() + interval '1 minute' then clock_timestamp() - created else '1 day' end;
  thread threads;
  -- The first event that spoke for the storm.
  speaker events;
  open_count int;
  storm_count int;
  -- The device must have got the push of one of these events.
  asked uuid[];
  is_told boolean := true;
  is_repeated boolean;
  wait interval;
  -- The events that told of its key before, and how long the thread waits for that.
  former uuid[];
  again interval;
  reason text;
begin
  select * into thread from threads t where t.project_id = project and t.thread_seq = event_thread_seq;
  -- Only if the device has, or is to have, a push of a thread of its key since then.
  if is_opening and not is_by_bell and thread.told_at < created then
    former := array(
      select e.id
      from (
          select t.*
          from threads t
          where t.project_id = project and t.thread_seq < event_thread_seq
            and (t.channel_id, t.key) >= (thread.channel_id, thread.key) and (t.channel_id, t.key) <= (thread.channel_id, thread.key)
          order by t.channel_id desc, t.key desc, t.thread_seq desc
          limit 100
        ) t
        cross join unnest(array[t.thread_seq, t.loud_seq, t.storm_seq]) as u (seq)
        cross join lateral events_between(project, u.seq - 1, u.seq) e
      where t.told_at >= thread.told_at
    );
    if was_pushed(project, former, device) is distinct from false then
      again := greatest(interval '0', thread.told_at - created + interval '5 minutes' - age);
    end if;
  end if;
  if is_by_bell then
    event_telling := case when not is_opening and event_telling is not null then 1 end;
    thread.storm_seq := null;
    thread.loud_seq := coalesce(thread.loud_seq, event_thread_seq);
  end if;
  if thread.storm_seq is not null then
    select * into speaker from events_between(project, thread.storm_seq - 1, thread.storm_seq);
  end if;
  if event_telling = 5 and age < interval '30 s' then
    wait := interval '30 s' - age;
  elsif event_telling > 3 then
    -- Those that are open come first.
    select count(*), count(t.severity) into storm_count, open_count
      from (
        select t.severity
        from threads t
        where t.project_id = project and t.storm_seq = thread.storm_seq
        order by t.severity
        limit 1001
      ) t;
    if is_opening <> (open_count > 0) then
      reason := 'storm';
    elsif event_telling = 5 or not is_opening then
      -- The events that spoke for the storm before, of as many threads as are counted.
      asked := array(
        select e.id
        from (
            select t.thread_seq
            from threads t
            where t.project_id = project and t.storm_seq = thread.storm_seq and t.thread_seq < event_seq
            order by t.severity
            limit 1001
          ) t
          cross join lateral events_between(project, t.thread_seq - 1, t.thread_seq) e
        where e.telling > 3
      ) || speaker.id;
    else
      wait := again;
    end if;
  elsif event_telling = 1 then
    if not is_by_bell and exists (
      select
      from events_between(project, thread.last_seq - 1, thread.last_seq) e
      where e.seq > event_seq and e.notify and e.level is distinct from 0 and coalesce(e.telling, 0) not in (2, 3)
        and e.occurred_at >= e.created_at - interval '10 minutes'
    ) then
      reason := 'replaced';
    elsif not is_by_bell and age < interval '5 s' then
      wait := interval '5 s' - age;
    elsif thread.loud_seq is null and thread.storm_seq is not null then
      is_told := false;
    else
      -- The events before this one: the first, the last ones, and the last that was told aloud.
      asked := array(
        select e.id
        from (
            (
              select o.seq
              from thread_events o
              where o.project_id = project and o.thread_seq = event_thread_seq and o.seq < event_seq
              order by o.seq
              limit 1
            )
            union all
            (
              select o.seq
              from thread_events o
              where o.project_id = project and o.thread_seq = event_thread_seq and o.seq < event_seq
              order by o.seq desc
              limit 20
            )
            union all select thread.loud_seq
          ) u
          cross join lateral events_between(project, u.seq - 1, u.seq) e
        where u.seq < event_seq
      );
    end if;
  elsif is_opening and speaker.id is not null and coalesce(event_level, 1) <= coalesce(speaker.level, 1) and (
    thread.severity is null or speaker.deleted_at is null and (
      was_pushed(project, array[speaker.id], device) is distinct from false
      or not exists (
        select from delivery_cursors c where c.project_id = project and c.kind = 'push' and c.seq >= speaker.seq
      )
    )
  ) then
    -- The storm is told in its place.
    reason := 'storm';
  elsif is_opening and coalesce(event_level, 1) < 3 and age < interval '2 s' and exists (
    select
    from storms s
    where s.project_id = project and s.channel_id = thread.channel_id and event_seq = any(s.seqs) and s.seqs[1] < event_seq
  ) then
    wait := interval '2 s' - age;
  elsif thread.severity is null and again is not null then
    reason := 'replaced';
  else
    wait := again;
  end if;
  if asked is not null then
    is_told := was_pushed(project, asked, device);
  end if;
  if is_told is null then
    select greatest(interval '1 s', least(interval '1 minute', coalesce(min(o.available_at) - clock_timestamp(), '0'))) into wait
      from outbox o
      where o.project_id = project and o.event_id = any(asked) and o.kind = 'push' and o.target_id = device
        and o.token is null;
  end if;
  is_repeated := event_level = 3 and event_telling is null and was_pushed(project, array[event_id], device);
  return json_build_object(
    'seq', case
      when event_telling > 3 then (select l.last_seq from event_logs l where l.project_id = project)
      -- A repetition replaces updates that followed.
      when is_repeated then thread.last_seq
      else event_seq
    end,
    'threadSeq', event_thread_seq, 'state', state_name(event_state), 'isOpening', is_opening,
    'isSilent', is_told and coalesce(event_telling in (1, 5) or event_telling = 4 and not is_opening, false),
    'elapsedMs', (extract(epoch from event_at - thread.opened_at) * 1000)::float8,
    'waitMs', (extract(epoch from wait) * 1000)::float8,
    'storm', case when event_telling > 3 then
      json_build_object('seq', thread.storm_seq, 'openCount', open_count, 'count', storm_count)
    end,
    'withheld', case when not is_told and not is_by_bell and event_telling <> 5 then 'untold' else reason end
  );
end
$$;

-- Returns what became of the thread or the event that a notification of this time is about:
-- acknowledged, resolved or null.
create or replace function push_answer(project uuid, about bigint, told_at timestamptz) returns text
language plpgsql stable
as $$
begin
  if exists (select from acknowledgements a where a.project_id = project and a.thread_seq = about and a.at >= told_at) then
    return 'acknowledged';
  end if;
  if exists (select from threads t where t.project_id = project and t.thread_seq = about and t.state in (0, 1)) then
    return 'resolved';
  end if;
  return null;
end
$$;

-- Keeps pushes that are about to be sent, and returns what each says in its order: how many of the
-- newest 100 notifications of the last day are unread on its device, and the tags of up to 20 that
-- were read or acknowledged elsewhere. A device that is just being removed is skipped.
create or replace function keep_shown_pushes(
  project_ids uuid[], channel_ids uuid[], seqs bigint[], about_seqs bigint[], devices uuid[], tags text[]
) returns table (badge int, read_tags json)
language plpgsql
as $$
#variable_conflict use_column
declare
  kept constant uuid[] := array(
    select d.id from push_subscriptions d where d.id = any(devices) order by d.id for key share skip locked
  );
begin
  -- After a crash a badge may be too low, until the next push.
  perform set_config('synchronous_commit', 'off', true);
  insert into shown_pushes as s (project_id, target_id, tag, channel_id, seq, about_seq, at)
  select distinct on (n.project_id, n.device, n.tag) n.project_id, n.device, n.tag, n.channel_id, n.seq, n.about_seq, now()
  from unnest(project_ids, channel_ids, seqs, about_seqs, devices, tags)
    as n (project_id, channel_id, seq, about_seq, device, tag)
  where n.device = any(kept)
  -- The order in which every batch locks rows.
  order by n.project_id, n.device, n.tag, n.seq desc
  on conflict (project_id, target_id, tag) do update set
    seq = excluded.seq, at = excluded.at, is_opened = s.is_opened and s.seq >= excluded.seq;
  return query
    select u.badge, u.read_tags
    from unnest(devices, tags) with ordinality as n (device, tag, ord)
      cross join lateral (
        select
          count(*) filter (where a.answer is null)::int as badge,
          coalesce(
            to_json((array_agg(s.tag order by s.at desc) filter (where s.tag <> n.tag and a.answer <> 'resolved'))[:20]), '[]'
          ) as read_tags
        from push_subscriptions d
          cross join lateral (
            select s.*
            from shown_pushes s
            where s.target_id = d.id and s.at > now() - interval '1 day'
            order by s.at desc
            limit 100
          ) s
          join projects p on p.id = s.project_id and p.deleted_at is null
          join memberships m on m.organization_id = p.organization_id and m.account_id = d.account_id
          cross join lateral (
            select case
              when s.is_opened or s.seq <= (
                select max(r.seq)
                from read_marks r
                where r.project_id = s.project_id and r.account_id = d.account_id
                  and (r.channel_id = s.channel_id or r.channel_id is null)
              ) then 'read'
              else push_answer(s.project_id, s.about_seq, s.at)
            end as answer
            -- Calls it once a row.
            offset 0
          ) a
        where d.id = n.device
      ) u
    order by n.ord;
end
$$;

-- Returns the push services that refuse this server: since a push of any device was last accepted,
-- they have refused several devices for a minute, or the only device that matters. A device with
-- refusals of its own is left out. A time in the future means that the clock was set back.
create or replace function refusing_push_services()
returns table (service text, accepted_at timestamptz, device_count int, reason text, ahead_s int)
language sql stable as $$
  with services as (
    select d.host, max(d.accepted_at) filter (where d.accepted_at <= now()) as accepted_at
    from push_subscriptions d
    group by d.host
  ), refused as (
    select d.*, s.accepted_at as service_accepted_at
    from services s
      join push_subscriptions d on d.host = s.host
    where d.refusals = 0 and d.refused_at <= now()
      and d.refused_at > coalesce(s.accepted_at + interval '1 minute', '-infinity')
  )
  select
    r.host, min(r.service_accepted_at), count(*)::int, (array_agg(r.last_outcome order by r.refused_at desc))[1],
    (array_agg(r.service_ahead_s order by r.refused_at desc))[1]
  from refused r
  group by r.host
  having count(*) > 1 or not exists (
    select
    from push_subscriptions e
    where e.host = r.host and e.id <> all(array_agg(r.id))
      and e.accepted_at > min(coalesce(r.accepted_at, r.created_at)) + interval '1 minute'
  )
$$;

-- Timers are deliveries of the kind 'timer'. Those of an alarm belong to the event that opened its
-- thread, or to the event itself: one repeats it, and up to three tell members in stages. Their
-- targets are the id of the project with other last digits, 0000 for the repetition and 0001 to
-- 0003 for the stages. Those of a question belong to its event: 0004 lets it expire, and 1000 and
-- more call its program.

-- Returns how a channel tells members of its alarms. Null for the defaults.
create or replace function escalation_of(project uuid, channel uuid) returns jsonb
language sql stable as $$
  select e.escalation from escalations e where e.project_id = project and e.channel_id = channel
$$;

-- Returns the lowest level of a channel's alarms.
create or replace function alarm_level(escalation jsonb) returns smallint
language sql immutable parallel safe
return case escalation ->> 'level' when 'high' then 2 else 3 end;

-- Returns whether an event is an alarm, if members are told of it: aloud, and not of an end.
create or replace function is_alarm(telling smallint, level smallint, state smallint, escalation jsonb) returns boolean
language sql immutable parallel safe
return coalesce(telling, 4) = 4 and coalesce(level, 1) >= alarm_level(escalation) and coalesce(state, 3) > 1;

-- Returns the acknowledgement of a thread, or of an event without one, unless it has ended.
create or replace function current_acknowledgement(project uuid, of_seq bigint) returns setof acknowledgements
language sql stable as $$
  select a.*
  from acknowledgements a
  where a.project_id = project and a.thread_seq >= of_seq and a.thread_seq <= of_seq
    and (a.until is null or a.until > now())
  order by a.thread_seq
  limit 1
$$;

-- Starts the timers of alarms that nobody has acknowledged. `alarms` are the ids of some events.
create or replace function start_timers(events push_event[], alarms uuid[]) returns void
language sql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
  insert into outbox (project_id, event_id, kind, target_id, available_at, requested_at)
  select
    v.project_id, coalesce(f.id, v.id), 'timer', timer_target(v.project_id, t.number),
    now() + t.minutes * interval '1 minute', now() + t.minutes * interval '1 minute'
  from unnest(events) e
    cross join lateral event_by_id(e.project_id, e.id) v
    cross join lateral (select escalation_of(v.project_id, v.channel_id) as escalation) c
    left join lateral events_between(v.project_id, v.thread_seq - 1, v.thread_seq) f on true
    cross join lateral (
      select 0 as number, coalesce((c.escalation ->> 'repeatMinutes')::int, 5) as minutes
      where v.level = 3
      union all
      select s.nth::int, (s.stage ->> 'afterMinutes')::int
      from jsonb_array_elements(c.escalation -> 'stages') with ordinality as s (stage, nth)
    ) t
  where e.id = any(alarms)
    and not exists (select from current_acknowledgement(v.project_id, coalesce(v.thread_seq, v.seq)))
  order by 1, 2, 4
  on conflict (project_id, event_id, kind, target_id) do nothing
$$;

-- Returns the target of a project's repetitions (0), of its stage `number`, of expiries (4) or of
-- the callbacks of a host (1000 and more). Null without a number.
create or replace function timer_target(project uuid, number int) returns uuid
language sql immutable parallel safe
return (left(project::text, 32) || to_char(number, 'FM0000'))::uuid;

-- Returns what is known of the alarm that an event is part of: its thread, or the event alone.
-- `seq` is the thread_seq, or the seq of an event without a thread; null if the event is deleted.
-- `first_id` is the event that its timers belong to. is_open is true if it can be acknowledged.
create or replace function find_alarm(
  project uuid, event_id uuid, out seq bigint, out first_id uuid, out level smallint, out is_open boolean,
  out event events, out channel channels, out escalation jsonb, out thread threads, out acknowledgement acknowledgements
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  lowest smallint;
  -- The event that opened its thread, and how urgent the storm is that this one speaks for.
  opening events;
  worst smallint;
begin
  select * into event from event_by_id(project, event_id) e where e.deleted_at is null;
  if event.id is null then
    return;
  end if;
  select * into channel from channel_by_id(project, event.channel_id);
  escalation := escalation_of(project, event.channel_id);
  lowest := alarm_level(escalation);
  seq := coalesce(event.thread_seq, event.seq);
  first_id := event.id;
  level := event.level;
  is_open := coalesce(event.level, 1) >= lowest or coalesce(event.level = 3, false);
  if event.thread_seq is not null then
    select * into opening from events_between(project, seq - 1, seq);
    first_id := coalesce(opening.id, event.id);
    select * into thread from threads t where t.project_id = project and t.thread_seq = find_alarm.seq;
    level := thread.level;
    is_open := thread.severity is not null
      or coalesce(thread.state, 4) = 4 and coalesce(thread.level, 1) >= lowest and thread.count > 0 and not exists (
        select
        from threads n
        where n.project_id = project and n.channel_id = thread.channel_id and n.key = thread.key
          and n.thread_seq > thread.thread_seq
      );
    -- A thread that speaks for a storm stands for all of it.
    if opening.telling = 4 then
      select s.severity / 2 into worst
        from threads s
        where s.project_id = project and s.storm_seq = thread.storm_seq and s.severity >= 0
        order by s.severity desc
        limit 1;
      level := case when worst is null then level else nullif(worst, 1) end;
      is_open := is_open or worst is not null;
    end if;
    is_open := coalesce(is_open, false);
  end if;
  select * into acknowledgement from acknowledgements a where a.project_id = project and a.thread_seq = find_alarm.seq;
end
$$;

-- Cancels the timers of the alarms of events, and records it. The caller has locked the logs of
-- their projects. Like the settler, it locks rows in the order of their ids.
create or replace function cancel_timers(project_ids uuid[], event_ids uuid[], reason text) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with held as materialized (
    select o.id
    from outbox o
    where o.id = any(array(
      select t.id
      from unnest(project_ids, event_ids) as u (project_id, event_id)
        join outbox t on t.project_id = u.project_id and t.event_id = u.event_id and t.kind = 'timer'
          and t.target_id < timer_target(u.project_id, 4)
    ))
    order by o.id
    for update
  ), ended as (
    delete from outbox o
      using held h
      where o.id = h.id
      returning o.id, o.project_id, o.event_id, o.target_id, o.attempts
  )
  insert into deliveries (id, project_id, event_id, kind, target_id, state, attempts, reason)
    select e.id, e.project_id, e.event_id, 'timer', e.target_id, 'cancelled', e.attempts, cancel_timers.reason
    from ended e
    order by e.project_id, e.event_id, e.target_id
    on conflict (project_id, event_id, kind, target_id) do update set
      id = excluded.id, state = excluded.state, attempts = excluded.attempts, latency_ms = null,
      reason = excluded.reason, at = excluded.at;
end
$$;

-- Timers are deliveries of the kind 'timer'. Those of an alarm belong to the event that opened its
-- thread, or to the event itself: one repeats it, and up to three tell members in stages. Their
-- targets are the id of the project with other last digits, 0000 for the repetition and 0001 to
-- 0003 for the stages.

-- Returns the lowest level of a channel's alarms.
create or replace function alarm_level(escalation jsonb) returns smallint
language sql immutable parallel safe
return case escalation ->> 'level' when 'normal' then 1 when 'high' then 2 else 3 end;

-- Returns the target of a project's repetitions (0) or of its stage `number`.
create or replace function timer_target(project uuid, number int) returns uuid
language sql immutable parallel safe
return (left(project::text, 32) || to_char(number, 'FM0000'))::uuid;

-- Returns what is known of the alarm that an event is part of: its thread, or the event alone.
-- `seq` is the thread_seq, or the seq of an event without a thread; null if the event is deleted.
-- `first_id` is the event that its timers belong to. is_open is true if it can be acknowledged.
create or replace function find_alarm(
  project uuid, event_id uuid, out seq bigint, out first_id uuid, out level smallint, out is_open boolean,
  out event events, out channel channels, out thread threads, out acknowledgement acknowledgements
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  lowest smallint;
begin
  select * into event from event_by_id(project, event_id) e where e.deleted_at is null;
  if event.id is null then
    return;
  end if;
  select * into channel from channel_by_id(project, event.channel_id);
  lowest := alarm_level(channel.escalation);
  seq := coalesce(event.thread_seq, event.seq);
  first_id := event.id;
  level := event.level;
  is_open := coalesce(event.level, 1) >= lowest or coalesce(event.level = 3, false);
  if event.thread_seq is not null then
    first_id := coalesce((select e.id from events_between(project, seq - 1, seq) e), event.id);
    select * into thread from threads t where t.project_id = project and t.thread_seq = find_alarm.seq;
    level := thread.level;
    is_open := thread.severity is not null
      or coalesce(coalesce(thread.state, 4) = 4 and thread.count > 0 and coalesce(thread.level, 1) >= lowest, false);
  end if;
  select * into acknowledgement from acknowledgements a where a.project_id = project and a.thread_seq = find_alarm.seq;
end
$$;

-- Cancels the timers of events, and records it. The caller has locked the project's log. Like the
-- settler, it locks rows in the order of their ids.
create or replace function cancel_timers(project uuid, event_ids uuid[], reason text) returns void
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
      from unnest(event_ids) as u (id)
        join outbox t on t.project_id = project and t.event_id = u.id and t.kind = 'timer'
    ))
    order by o.id
    for update
  ), ended as (
    delete from outbox o
      using held h
      where o.id = h.id
      returning o.id, o.event_id, o.target_id, o.attempts
  )
  insert into deliveries (id, project_id, event_id, kind, target_id, state, attempts, reason)
    select e.id, project, e.event_id, 'timer', e.target_id, 'cancelled', e.attempts, cancel_timers.reason
    from ended e
    order by e.event_id, e.target_id
    on conflict (project_id, event_id, kind, target_id) do update set
      id = excluded.id, state = excluded.state, attempts = excluded.attempts, latency_ms = null,
      reason = excluded.reason, at = excluded.at;
end
$$;
